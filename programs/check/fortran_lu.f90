! LU with row pivoting as HPL's in small: columns dealt to the ranks in blocks, panels broadcast. Prints HPL's scaled
! residual, which passes below 16.
program lu
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: dp => real64
  implicit none
  integer, parameter :: n = 192, nb = 16
  real(dp) :: a(n, n), whole(n, n), panel(n, nb), b(n), x(n), rest(n), started, ended, scaled
  integer :: pivots(nb), rank, ranks, k, j, c, row, owner

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call fill(whole, b)
  a = whole
  x = b
  call MPI_Barrier(MPI_COMM_WORLD)
  started = MPI_Wtime()
  do k = 1, n, nb
    owner = mod((k - 1)/nb, ranks)
    if (owner == rank) then
      do j = k, k + nb - 1
        row = j - 1 + maxloc(abs(a(j:n, j)), dim=1)
        pivots(j - k + 1) = row
        a([j, row], k:k + nb - 1) = a([row, j], k:k + nb - 1)
        a(j + 1:n, j) = a(j + 1:n, j)/a(j, j)
        do c = j + 1, k + nb - 1
          a(j + 1:n, c) = a(j + 1:n, c) - a(j + 1:n, j)*a(j, c)
        end do
      end do
      panel(k:n, :) = a(k:n, k:k + nb - 1)
    end if
    call MPI_Bcast(pivots, nb, MPI_INTEGER, owner, MPI_COMM_WORLD)
    call MPI_Bcast(panel, n*nb, MPI_DOUBLE_PRECISION, owner, MPI_COMM_WORLD)
    do j = 1, nb
      x([k + j - 1, pivots(j)]) = x([pivots(j), k + j - 1])
      do c = 1, n
        if (mod((c - 1)/nb, ranks) == rank .and. (c < k .or. c >= k + nb)) &
          a([k + j - 1, pivots(j)], c) = a([pivots(j), k + j - 1], c)
      end do
    end do
    do c = k + nb, n
      if (mod((c - 1)/nb, ranks) /= rank) cycle
      do j = 1, nb
        a(k + j:n, c) = a(k + j:n, c) - panel(k + j:n, j)*a(k + j - 1, c)
      end do
    end do
  end do
  ! Every rank gets all columns and solves; this is about messages, not about scaling.
  do c = 1, n
    call MPI_Bcast(a(1, c), n, MPI_DOUBLE_PRECISION, mod((c - 1)/nb, ranks), MPI_COMM_WORLD)
  end do
  ended = MPI_Wtime()
  do j = 1, n
    x(j + 1:n) = x(j + 1:n) - a(j + 1:n, j)*x(j)
  end do
  do j = n, 1, -1
    x(j) = x(j)/a(j, j)
    x(1:j - 1) = x(1:j - 1) - a(1:j - 1, j)*x(j)
  end do
  rest = matmul(whole, x) - b
  scaled = maxval(abs(rest))/(epsilon(1d0)*(maxval(sum(abs(whole), dim=2))*maxval(abs(x)) + maxval(abs(b)))*n)
  if (rank == 0) then
    print '(a, f10.6, a)', 'residual ', scaled, merge(' PASSED', ' FAILED', scaled < 16)
    print '(a, f14.9)', 'seconds ', ended - started
  end if
  call MPI_Finalize()

contains

  subroutine fill(matrix, right)
    real(dp), intent(out) :: matrix(:, :), right(:)
    integer :: i, l
    integer(8) :: state
    state = 1
    do l = 1, n
      do i = 1, n
        state = mod(state*16807_8, 2147483647_8)
        matrix(i, l) = real(state, dp)/2147483647 - 0.5_dp
      end do
    end do
    right = matrix(:, 1) + 1
  end subroutine
end program
