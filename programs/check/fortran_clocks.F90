! Clocks by each of Fortran's three interfaces: -DMPIF, -DUSE_MPI or -DUSE_F08. Rank 0 sends 1 MiB to rank 1 five times;
! what MPI_Wtime and system_clock say of it is printed by rank 1, in nanoseconds.
program fortran_clocks
#if defined(USE_F08)
  use mpi_f08
#elif defined(USE_MPI)
  use mpi
#endif
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
#if defined(MPIF)
  include 'mpif.h'
#endif
#if defined(USE_F08)
  type(MPI_Status) :: status
#else
  integer :: status(MPI_STATUS_SIZE)
#endif
  integer, parameter :: bytes = 1048576
  integer :: error, rank, ranks, turn, version, subversion
  integer(int64) :: first, last, rate
  double precision :: started, ended, total
  character, allocatable :: buffer(:)

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call MPI_Get_version(version, subversion, error)
  allocate (buffer(bytes))
  buffer = achar(rank)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  started = MPI_Wtime()
  call system_clock(first, rate)
  do turn = 1, 5
    if (rank == 0) call MPI_Send(buffer, bytes, MPI_CHARACTER, 1, turn, MPI_COMM_WORLD, error)
    if (rank == 1) call MPI_Recv(buffer, bytes, MPI_CHARACTER, 0, MPI_ANY_TAG, MPI_COMM_WORLD, status, error)
  end do
  call system_clock(last)
  ended = MPI_Wtime()
  total = rank
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  if (nint(total) /= ranks*(ranks - 1)/2) stop 1
  if (rank == 1) then
    if (any(buffer /= achar(0))) stop 1
#if defined(USE_F08)
    if (status%MPI_TAG /= 5) stop 1
#else
    if (status(MPI_TAG) /= 5) stop 1
#endif
    print '(a, i0, a, i0)', 'wtime ', nint((ended - started)*1d9), ' system_clock ', (last - first)*(1000000000/rate)
  end if
  call MPI_Finalize(error)
end program
