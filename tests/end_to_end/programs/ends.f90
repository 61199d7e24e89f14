! Ends by the way that its argument names; linked by hand to a distribution's bindings, so without mpif.h.
program ends
  implicit none
  external :: mpi_init, mpi_comm_rank, mpi_barrier, mpi_finalize, mpi_abort
  integer :: ierror, rank, world
  character(len=16) :: way, handle
  call get_command_argument(1, way)
  call get_command_argument(2, handle)
  read (handle, *) world  ! MPI_COMM_WORLD of the family
  call mpi_init(ierror)
  call mpi_comm_rank(world, rank, ierror)
  call mpi_barrier(world, ierror)
  if (way == 'abort' .and. rank == 1) call mpi_abort(world, 5, ierror)
  if (way == 'signal' .and. rank == 1) call kill(getpid(), 11)
  if (way == 'early' .and. rank == 1) stop
  if (way == 'all') then
    print '(a,i0)', 'leaves ', rank
    stop
  end if
  if (way == 'errors') then
    print '(a,i0)', 'leaves ', rank
    error stop 4
  end if
  if (way == 'left' .and. rank == 0) call mpi_barrier(world, ierror)
  call mpi_finalize(ierror)
  if (way == 'stop') stop
  if (way == 'failed' .and. rank == 1) error stop 3
  if (way == 'stays' .and. rank == 1) then
    do while (command_argument_count() == 2)  ! for ever
      ierror = 0
    end do
  end if
  if (rank == 0) print '(a)', 'done'
end program
