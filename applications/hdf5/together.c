/* All ranks write one dataset of one file together, each its columns, and read back those of the next rank. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECKED(call) ((call) < 0 ? (fprintf(stderr, "%s failed\n", #call), MPI_Abort(MPI_COMM_WORLD, 1)) : 0)

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    hsize_t rows = argc > 1 ? atoi(argv[1]) : 1024, columns = argc > 2 ? atoi(argv[2]) : 256;
    int independent = argc > 3;
    size_t count = rows * columns;

    unsigned *own = malloc(count * sizeof *own), *read = malloc(count * sizeof *read);
    for (size_t place = 0; place < count; place++)
        own[place] = (unsigned)(rank * count + place) * 2654435761u;

    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    CHECKED(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
    CHECKED(H5Pset_dxpl_mpio(transfer, independent ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE));
    hsize_t whole[2] = {rows, columns * ranks}, part[2] = {rows, columns}, at[2] = {0, columns * rank};
    hid_t memory = H5Screate_simple(2, part, NULL), disk = H5Screate_simple(2, whole, NULL);

    double begun = MPI_Wtime();
    hid_t file = H5Fcreate("together.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    CHECKED(file);
    hid_t set = H5Dcreate2(file, "numbers", H5T_NATIVE_UINT, disk, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    CHECKED(set);
    CHECKED(H5Sselect_hyperslab(disk, H5S_SELECT_SET, at, NULL, part, NULL));
    CHECKED(H5Dwrite(set, H5T_NATIVE_UINT, memory, disk, transfer, own));
    CHECKED(H5Dclose(set));
    CHECKED(H5Fclose(file));
    double written = MPI_Wtime();

    file = H5Fopen("together.h5", H5F_ACC_RDONLY, access);
    CHECKED(file);
    set = H5Dopen2(file, "numbers", H5P_DEFAULT);
    CHECKED(set);
    at[1] = columns * ((rank + 1) % ranks);
    CHECKED(H5Sselect_hyperslab(disk, H5S_SELECT_SET, at, NULL, part, NULL));
    CHECKED(H5Dread(set, H5T_NATIVE_UINT, memory, disk, transfer, read));
    CHECKED(H5Dclose(set));
    CHECKED(H5Fclose(file));
    double ended = MPI_Wtime();

    unsigned long long sum = 0, sums = 0;
    size_t next = (rank + 1) % ranks;
    for (size_t place = 0; place < count; place++) {
        if (read[place] != (unsigned)(next * count + place) * 2654435761u) {
            fprintf(stderr, "rank %d: number %zu of rank %zu is not what was written\n", rank, place, next);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        sum += read[place] * (place % 1000 + 1ull) * (next + 1);
    }
    MPI_Reduce(&sum, &sums, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("checksum %llu\n", sums);
        printf("written in %.6f s, read in %.6f s\n", written - begun, ended - written);
    }
    /* a file that is there already is opened first: more calls of MPI */
    if (rank == 0) remove("together.h5");
    H5Sclose(memory), H5Sclose(disk), H5Pclose(access), H5Pclose(transfer);
    free(own), free(read);
    MPI_Finalize();
    return 0;
}
