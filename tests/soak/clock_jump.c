/*
 * The wall clock of a process, moved by what a shared file says while the process runs.
 *
 * To be loaded with LD_PRELOAD. The file that NUMALIGN_CLOCK_SHIFT names holds one number of
 * nanoseconds, eight bytes in the byte order of the machine. A kernel has one wall clock for
 * everybody; this is for machines whose clock is not a test's to change. Clocks that only go
 * forward are left alone, as a jump leaves them alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

typedef int (*clock_reader)(clockid_t, struct timespec *);

static const int64_t *shift;
static clock_reader real_clock_gettime;

__attribute__((constructor)) static void open_shift(void)
{
    const char *path = getenv("NUMALIGN_CLOCK_SHIFT");
    real_clock_gettime = (clock_reader)dlsym(RTLD_NEXT, "clock_gettime");
    if (path == NULL)
        return;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        abort();
    void *page = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        abort();
    close(file);
    shift = page;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = real_clock_gettime != NULL ? real_clock_gettime(clock, now)
                                            : (int)syscall(SYS_clock_gettime, clock, now);
    if (failed != 0 || shift == NULL || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return failed;
    int64_t moved = now->tv_sec * SECOND + now->tv_nsec + __atomic_load_n(shift, __ATOMIC_RELAXED);
    now->tv_sec = moved / SECOND;
    now->tv_nsec = moved % SECOND;
    return 0;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec read;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &read) != 0)
        return -1;
    now->tv_sec = read.tv_sec;
    now->tv_usec = read.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result)
{
    struct timespec read;
    if (clock_gettime(CLOCK_REALTIME, &read) != 0)
        return (time_t)-1;
    if (result != NULL)
        *result = read.tv_sec;
    return read.tv_sec;
}
