/*
 * Two CPUs that do I/O in turn, each its own process, so that qemu's plugin moved.c can follow the lines that move.
 *
 * `alternate PHASE IOS BLOCK read|write|randread|randwrite DEVICE0 DEVICE1`: CPU n reads or writes IOS blocks of
 * DEVICE n past the page cache. `alternate PHASE ROUNDS 0 false|own|word`: instead of I/O each CPU writes, in memory that
 * both share, a word of its own in one line, a word in a line of its own, or the same word: what is then counted is known.
 *
 * After each I/O a CPU executes PAUSE, at which qemu with -icount goes on to the other: their I/Os alternate exactly.
 * No libc: linked with -nostdlib -static at 0x7d000000, its section .marks at 0x7e000000 (marks.c).
 */
__asm__(".section .marks,\"ax\",@progbits\n"
        ".globl marks\n"
        "marks: .rept 1024\n"
        ".balign 16\n"
        "ret\n"
        ".endr\n"
        ".text\n"
        ".globl _start\n"
        "_start: mov (%rsp), %rdi\n"
        "lea 8(%rsp), %rsi\n"
        "and $-16, %rsp\n"
        "call begin\n");

enum { IO = 1000, AWAKE, ASLEEP, SELF }; /* as in moved.c */
enum { PREAD = 17, PWRITE = 18, OPEN = 2, MMAP = 9, IOCTL = 16, FORK = 57, WAIT = 61, PIN = 203, EXIT = 231 };

#define WARM 300 /* I/Os of each CPU that are not counted: caches of slabs, tags, random numbers */
#define LARGEST (1 << 20)
#define BLKGETSIZE64 0x80081272L
#define DIRECT 040000

extern char marks[];

static struct {
    char alone[64];
    volatile long ready[2][8];
    volatile long line[2][8];
} *both;

static char buffer[LARGEST] __attribute__((aligned(4096)));

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static __attribute__((noreturn)) void leave(long code)
{
    for (;;)
        call(EXIT, code, 0, 0, 0, 0, 0);
}

static void mark(unsigned long number)
{
    ((void (*)(void))(marks + 16 * number))();
}

static long number(const char *text)
{
    long value = 0;

    while (*text >= '0' && *text <= '9')
        value = 10 * value + *text++ - '0';
    return value;
}

struct work {
    long phase, ios, block;
    const char *what;
    long file, blocks;
};

static void one_io(const struct work *work, long cpu, unsigned long *seed, long n)
{
    const char *what = work->what;
    long offset, done;

    if (*what == 'f') { /* false */
        both->line[0][cpu] = n;
    } else if (*what == 'o') { /* own */
        both->line[cpu][0] = n;
    } else if (work->block == 0) { /* word */
        both->line[0][0] = n;
    } else {
        *seed = *seed * 6364136223846793005UL + 1442695040888963407UL;
        offset = what[1] == 'a' ? (long)((*seed >> 33) % (unsigned long)work->blocks) : n % work->blocks;
        done = call(what[what[1] == 'a' ? 4 : 0] == 'w' ? PWRITE : PREAD, work->file, (long)buffer, work->block,
                    offset * work->block, 0, 0);
        if (done != work->block)
            leave(3);
    }
}

static void wait_for_other(long cpu, long stage)
{
    both->ready[cpu][0] = stage;
    while (both->ready[!cpu][0] < stage)
        __asm__ volatile("pause");
}

static void work_of(const struct work *work, long cpu)
{
    unsigned long mask = 1UL << cpu, seed = 12345 + (unsigned long)cpu;

    if (call(PIN, 0, sizeof(mask), (long)&mask, 0, 0, 0) < 0)
        leave(4);
    mark(SELF + (unsigned long)cpu);
    wait_for_other(cpu, 1);
    if (cpu == 0) {
        mark(AWAKE);
        mark((unsigned long)work->phase);
    }
    wait_for_other(cpu, 2);
    for (long n = 0; n < WARM + work->ios; n++) {
        if (n >= WARM)
            mark(IO);
        one_io(work, cpu, &seed, n);
        __asm__ volatile("pause" : : : "memory");
    }
    mark(ASLEEP);
    wait_for_other(cpu, 3);
}

static void open_device(struct work *work, const char *path)
{
    unsigned long size = 0;

    work->file = call(OPEN, (long)path, DIRECT | 2, 0, 0, 0, 0);
    if (work->file < 0 || call(IOCTL, work->file, BLKGETSIZE64, (long)&size, 0, 0, 0) < 0)
        leave(5);
    work->blocks = (long)size / work->block;
    if (work->blocks < 1)
        leave(6);
}

__attribute__((noreturn, used)) void begin(long argc, char **argv)
{
    struct work work = {0};
    long child, status = 0, cpu;

    if (argc < 5)
        leave(1);
    work.phase = number(argv[1]);
    work.ios = number(argv[2]);
    work.block = number(argv[3]);
    work.what = argv[4];
    if (work.phase < 1 || work.phase >= IO || work.block > LARGEST || (work.block && argc < 7))
        leave(1);
    both = (void *)call(MMAP, 0, 4096, 3, 0x21, -1, 0); /* shared by both, of no file */
    if ((unsigned long)both > -4096UL)
        leave(2);
    both->line[0][0] = both->line[1][0] = 0;
    child = call(FORK, 0, 0, 0, 0, 0, 0);
    if (child < 0)
        leave(2);
    cpu = child == 0;
    if (work.block)
        open_device(&work, argv[5 + cpu]);
    work_of(&work, cpu);
    if (cpu)
        leave(0);
    call(WAIT, child, (long)&status, 0, 0, 0, 0);
    mark(0);
    leave(status ? 7 : 0);
}
