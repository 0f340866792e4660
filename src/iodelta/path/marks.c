/*
 * Announces a phase to the plugin: `mark N` calls the code at 0x7e000000 + 16 * N, which only returns. No libc: linked
 * with -nostdlib -static, its section .marks placed there (plugin.c).
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

extern char marks[];

__attribute__((noreturn, used)) void begin(long argc, char **argv)
{
    unsigned long phase = 0;

    for (const char *digit = argc > 1 ? argv[1] : ""; *digit >= '0' && *digit <= '9'; digit++)
        phase = 10 * phase + (unsigned long)(*digit - '0');
    if (phase < 1024)
        ((void (*)(void))(marks + 16 * phase))();
    for (;;)
        __asm__ volatile("syscall" : : "a"(231L), "D"(phase < 1024 ? 0L : 1L) : "rcx", "r11", "memory");
}
