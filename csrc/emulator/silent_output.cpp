// Device printf and what the compiler makes of it: the text goes nowhere, since nothing that a program prints is
// evidence. A file of its own, because the C library's header may define some of these inline.
#include <cstdarg>

extern "C" {
int printf(const char*, ...) { return 0; }
int vprintf(const char*, va_list) { return 0; }
int puts(const char*) { return 0; }
int putchar(int character) { return character; }
}
