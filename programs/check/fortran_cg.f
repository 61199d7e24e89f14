C     A conjugate gradient as Nekbone's: spectral elements in a row,
C     each with n*n*n points, matrix-free; neighbours share a face. The
C     residual must not depend on the number of ranks.
      program cg
      implicit none
      include 'mpif.h'
      integer n, nel, nt
      parameter (n = 6, nel = 8, nt = n*n*n*nel)
      integer ierr, rank, ranks, mine, npts, k, i
      double precision x(nt), f(nt), r(nt), p(nt), w(nt), m(nt)
      double precision rho, rho1, alpha, beta, pap, glsc3, t0, t1
      integer before, after

      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
      if (mod(nel, ranks) .ne. 0) call MPI_ABORT(MPI_COMM_WORLD, 1,
     &    ierr)
      mine = nel/ranks
      npts = n*n*n*mine
      before = rank - 1
      after = rank + 1
      if (rank .eq. 0) before = MPI_PROC_NULL
      if (rank .eq. ranks - 1) after = MPI_PROC_NULL

C     m: one over how many elements have this point.
      do i = 1, npts
        m(i) = 1d0
      end do
      call dssum(m, n, mine, before, after)
      do i = 1, npts
        m(i) = 1d0/m(i)
        x(i) = 0d0
        f(i) = dble(mod((rank*npts + i)*7, 13))/13d0
      end do
      call dssum(f, n, mine, before, after)
      do i = 1, npts
        r(i) = f(i)
        p(i) = 0d0
      end do

      t0 = MPI_WTIME()
      rho = 1d0
      do k = 1, 30
        rho1 = rho
        rho = glsc3(r, m, r, npts)
        beta = rho/rho1
        if (k .eq. 1) beta = 0d0
        do i = 1, npts
          p(i) = r(i) + beta*p(i)
        end do
        call ax(w, p, n, mine)
        call dssum(w, n, mine, before, after)
        pap = glsc3(w, m, p, npts)
        alpha = rho/pap
        do i = 1, npts
          x(i) = x(i) + alpha*p(i)
          r(i) = r(i) - alpha*w(i)
        end do
      end do
      t1 = MPI_WTIME()
      rho = sqrt(glsc3(r, m, r, npts))
      if (rank .eq. 0) then
        write (*, '(a, es22.14)') 'residual', rho
        write (*, '(a, f14.9)') 'seconds ', t1 - t0
      end if
      call MPI_FINALIZE(ierr)
      end

C     w = (1 + second differences in each direction) u, element by
C     element.
      subroutine ax(w, u, n, mine)
      implicit none
      integer n, mine, e, i, j, k
      double precision w(n, n, n, mine), u(n, n, n, mine), s
      do e = 1, mine
        do k = 1, n
          do j = 1, n
            do i = 1, n
              s = 0.1d0*u(i, j, k, e)
              if (i .gt. 1) s = s + u(i, j, k, e) - u(i - 1, j, k, e)
              if (i .lt. n) s = s + u(i, j, k, e) - u(i + 1, j, k, e)
              if (j .gt. 1) s = s + u(i, j, k, e) - u(i, j - 1, k, e)
              if (j .lt. n) s = s + u(i, j, k, e) - u(i, j + 1, k, e)
              if (k .gt. 1) s = s + u(i, j, k, e) - u(i, j, k - 1, e)
              if (k .lt. n) s = s + u(i, j, k, e) - u(i, j, k + 1, e)
              w(i, j, k, e) = s
            end do
          end do
        end do
      end do
      end

C     Adds what elements have on the faces that they share.
      subroutine dssum(u, n, mine, before, after)
      implicit none
      include 'mpif.h'
      integer n, mine, before, after, e, i, j, ierr
      integer status(MPI_STATUS_SIZE)
      double precision u(n, n, n, mine), s
      double precision mineb(64, 64), minea(64, 64), b(64, 64),
     &    a(64, 64)
      do j = 1, n
        do i = 1, n
          mineb(i, j) = u(i, j, 1, 1)
          minea(i, j) = u(i, j, n, mine)
          b(i, j) = 0d0
          a(i, j) = 0d0
        end do
      end do
      call MPI_SENDRECV(mineb, 64*64, MPI_DOUBLE_PRECISION, before, 1,
     &    a, 64*64, MPI_DOUBLE_PRECISION, after, 1, MPI_COMM_WORLD,
     &    status, ierr)
      call MPI_SENDRECV(minea, 64*64, MPI_DOUBLE_PRECISION, after, 2,
     &    b, 64*64, MPI_DOUBLE_PRECISION, before, 2, MPI_COMM_WORLD,
     &    status, ierr)
      do e = 1, mine - 1
        do j = 1, n
          do i = 1, n
            s = u(i, j, n, e) + u(i, j, 1, e + 1)
            u(i, j, n, e) = s
            u(i, j, 1, e + 1) = s
          end do
        end do
      end do
      do j = 1, n
        do i = 1, n
          u(i, j, 1, 1) = u(i, j, 1, 1) + b(i, j)
          u(i, j, n, mine) = u(i, j, n, mine) + a(i, j)
        end do
      end do
      end

      double precision function glsc3(a, b, c, n)
      implicit none
      include 'mpif.h'
      integer n, i, ierr
      double precision a(n), b(n), c(n), own, all
      own = 0d0
      do i = 1, n
        own = own + a(i)*b(i)*c(i)
      end do
      call MPI_ALLREDUCE(own, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM,
     &    MPI_COMM_WORLD, ierr)
      glsc3 = all
      end
