/*
 * Announces something to the plugin: `mark N` calls the code at 0x7e000000 + 16 * N, which only returns; `mark N HEX...`
 * before it, for each digit D of a number, that of 1024 + D, and so for each number. No libc: linked with -nostdlib
 * -static, its section .marks placed there (plugin.c).
 */
__asm__(".section .marks,\"ax\",@progbits\n"
        ".globl marks\n"
        "marks: .rept 1044\n"
        ".balign 16\n"
        "ret\n"
        ".endr\n"
        ".text\n"
        ".globl _start\n"
        "_start: mov (%rsp), %rdi\n"
        "lea 8(%rsp), %rsi\n"
        "and $-16, %rsp\n"
        "call begin\n");

#define DIGITS 1024ul
#define MARKED 1044ul

extern char marks[];

static void mark(unsigned long number)
{
    if (number < MARKED)
        ((void (*)(void))(marks + 16 * number))();
}

__attribute__((noreturn, used)) void begin(long argc, char **argv)
{
    unsigned long number = 0;

    for (const char *digit = argc > 1 ? argv[1] : ""; *digit >= '0' && *digit <= '9'; digit++)
        number = 10 * number + (unsigned long)(*digit - '0');
    if (argc < 3)
        mark(number);
    for (long i = 2; i < argc; i++) {
        for (const char *digit = argv[i]; *digit; digit++)
            mark(DIGITS + (unsigned long)(*digit <= '9' ? *digit - '0' : *digit - 'a' + 10));
        mark(number);
    }
    for (;;)
        __asm__ volatile("syscall" : : "a"(231L), "D"(number < MARKED ? 0L : 1L) : "rcx", "r11", "memory");
}
