/* The Laplace operator on a cube, by hypre: conjugate gradients preconditioned by BoomerAMG. */
#include <HYPRE.h>
#include <HYPRE_krylov.h>
#include <HYPRE_parcsr_ls.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    HYPRE_Init();

    /* Planes of the cube are dealt out to the ranks, as evenly as it goes. */
    int side = argc > 1 ? atoi(argv[1]) : 40, plane = side * side;
    int first = side * rank / ranks * plane, last = side * (rank + 1) / ranks * plane - 1;

    HYPRE_IJMatrix filled;
    HYPRE_IJVector right, start;
    HYPRE_IJMatrixCreate(MPI_COMM_WORLD, first, last, first, last, &filled);
    HYPRE_IJMatrixSetObjectType(filled, HYPRE_PARCSR);
    HYPRE_IJMatrixInitialize(filled);
    HYPRE_IJVectorCreate(MPI_COMM_WORLD, first, last, &right);
    HYPRE_IJVectorSetObjectType(right, HYPRE_PARCSR);
    HYPRE_IJVectorInitialize(right);
    HYPRE_IJVectorCreate(MPI_COMM_WORLD, first, last, &start);
    HYPRE_IJVectorSetObjectType(start, HYPRE_PARCSR);
    HYPRE_IJVectorInitialize(start);
    for (int row = first; row <= last; row++) {
        int x = row % side, y = row / side % side, z = row / plane, count = 0, columns[7];
        double values[7], one = 1.0, zero = 0.0;
        columns[count] = row, values[count++] = 6;
        if (x > 0) columns[count] = row - 1, values[count++] = -1;
        if (x < side - 1) columns[count] = row + 1, values[count++] = -1;
        if (y > 0) columns[count] = row - side, values[count++] = -1;
        if (y < side - 1) columns[count] = row + side, values[count++] = -1;
        if (z > 0) columns[count] = row - plane, values[count++] = -1;
        if (z < side - 1) columns[count] = row + plane, values[count++] = -1;
        HYPRE_IJMatrixSetValues(filled, 1, &count, &row, columns, values);
        HYPRE_IJVectorSetValues(right, 1, &row, &one);
        HYPRE_IJVectorSetValues(start, 1, &row, &zero);
    }
    HYPRE_IJMatrixAssemble(filled);
    HYPRE_IJVectorAssemble(right);
    HYPRE_IJVectorAssemble(start);
    HYPRE_ParCSRMatrix matrix;
    HYPRE_ParVector b, x;
    HYPRE_IJMatrixGetObject(filled, (void **)&matrix);
    HYPRE_IJVectorGetObject(right, (void **)&b);
    HYPRE_IJVectorGetObject(start, (void **)&x);

    HYPRE_Solver solver, multigrid;
    HYPRE_ParCSRPCGCreate(MPI_COMM_WORLD, &solver);
    HYPRE_PCGSetMaxIter(solver, 200);
    HYPRE_PCGSetTol(solver, 1e-9);
    HYPRE_PCGSetTwoNorm(solver, 1);
    HYPRE_BoomerAMGCreate(&multigrid);
    HYPRE_BoomerAMGSetCoarsenType(multigrid, 10); /* HMIS */
    HYPRE_BoomerAMGSetInterpType(multigrid, 6);
    HYPRE_BoomerAMGSetRelaxType(multigrid, 6); /* symmetric Gauss-Seidel, Jacobi between the ranks */
    HYPRE_BoomerAMGSetTol(multigrid, 0.0);
    HYPRE_BoomerAMGSetMaxIter(multigrid, 1);
    HYPRE_PCGSetPrecond(solver, (HYPRE_PtrToSolverFcn)HYPRE_BoomerAMGSolve, (HYPRE_PtrToSolverFcn)HYPRE_BoomerAMGSetup,
                        multigrid);

    if (argc > 2) HYPRE_BoomerAMGSetAggNumLevels(multigrid, atoi(argv[2]));
    double begun = MPI_Wtime();
    HYPRE_ParCSRPCGSetup(solver, matrix, b, x);
    double ready = MPI_Wtime();
    HYPRE_ParCSRPCGSolve(solver, matrix, b, x);
    double solved = MPI_Wtime();

    HYPRE_Int iterations;
    HYPRE_Real residual;
    HYPRE_PCGGetNumIterations(solver, &iterations);
    HYPRE_PCGGetFinalRelativeResidualNorm(solver, &residual);
    if (rank == 0) {
        printf("iterations %d, relative residual %.6e\n", (int)iterations, residual);
        printf("setup %.6f s, solve %.6f s\n", ready - begun, solved - ready);
    }

    HYPRE_ParCSRPCGDestroy(solver);
    HYPRE_BoomerAMGDestroy(multigrid);
    HYPRE_IJMatrixDestroy(filled);
    HYPRE_IJVectorDestroy(right);
    HYPRE_IJVectorDestroy(start);
    HYPRE_Finalize();
    MPI_Finalize();
    return 0;
}
