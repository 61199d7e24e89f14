/* The Poisson problem on a square, by PETSc: how many iterations, and how close to the solution that is known. */
#include <petscksp.h>

int main(int argc, char **argv)
{
    PetscInt side = 200, first, end, iterations;
    PetscReal residual, error, begun;
    PetscMPIInt rank;
    Mat matrix;
    Vec solution, right, known;
    KSP solver;

    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-side", &side, NULL));

    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, side * side, side * side, 5, NULL, 2, NULL,
                           &matrix));
    PetscCall(MatGetOwnershipRange(matrix, &first, &end));
    for (PetscInt row = first; row < end; row++) {
        PetscInt i = row / side, j = row % side, count = 0, columns[5];
        PetscScalar values[5];
        columns[count] = row, values[count++] = 4;
        if (i > 0) columns[count] = row - side, values[count++] = -1;
        if (i < side - 1) columns[count] = row + side, values[count++] = -1;
        if (j > 0) columns[count] = row - 1, values[count++] = -1;
        if (j < side - 1) columns[count] = row + 1, values[count++] = -1;
        PetscCall(MatSetValues(matrix, 1, &row, count, columns, values, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(matrix, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(matrix, MAT_FINAL_ASSEMBLY));

    PetscCall(MatCreateVecs(matrix, &solution, &right));
    PetscCall(VecDuplicate(solution, &known));
    for (PetscInt row = first; row < end; row++) {
        PetscScalar value = (row / side) % 7 - (row % side) % 5;
        PetscCall(VecSetValues(known, 1, &row, &value, INSERT_VALUES));
    }
    PetscCall(VecAssemblyBegin(known));
    PetscCall(VecAssemblyEnd(known));
    PetscCall(MatMult(matrix, known, right));

    PetscCall(KSPCreate(PETSC_COMM_WORLD, &solver));
    PetscCall(KSPSetOperators(solver, matrix, matrix));
    PetscCall(KSPSetTolerances(solver, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(KSPSetFromOptions(solver));
    PetscCall(KSPSetUp(solver));
    begun = MPI_Wtime();
    PetscCall(KSPSolve(solver, right, solution));
    begun = MPI_Wtime() - begun;

    PetscCall(KSPGetIterationNumber(solver, &iterations));
    PetscCall(KSPGetResidualNorm(solver, &residual));
    PetscCall(VecAXPY(solution, -1, known));
    PetscCall(VecNorm(solution, NORM_2, &error));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "iterations %d, residual %.6e, error %.6e\n", (int)iterations,
                          (double)residual, (double)error));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solved in %.6f s\n", (double)begun));

    PetscCall(KSPDestroy(&solver));
    PetscCall(VecDestroy(&known));
    PetscCall(VecDestroy(&right));
    PetscCall(VecDestroy(&solution));
    PetscCall(MatDestroy(&matrix));
    return PetscFinalize();
}
