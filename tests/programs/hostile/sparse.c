/* Files with huge tables, which take no space on disk, named as interpreters and mapped: argv[1] is
 * how many, argv[2] how many rounds their code runs. */
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"

#define MOST 64
#define HUGE (400L << 20)
#define PAGE 4096

/* mov $500000, %ecx; 1: dec %ecx; jnz 1b; ret */
static const unsigned char code[] = {0xb9, 0x20, 0xa1, 0x07, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static const char names[] = "\0.symtab\0.strtab\0.eh_frame";

static Elf64_Shdr section(int name, int type, long offset, long size)
{
    return (Elf64_Shdr){.sh_name = name, .sh_type = type, .sh_offset = offset, .sh_size = size,
                        .sh_addr = type == SHT_PROGBITS ? offset : 0, .sh_link = 2,
                        .sh_entsize = type == SHT_SYMTAB ? sizeof(Elf64_Sym) : 0};
}

static void write_at(int file, const void *bytes, size_t size, long offset)
{
    if (pwrite(file, bytes, size, offset) != (ssize_t)size)
        exit(1);
}

/* Makes a file and maps its first pages. Returns the code in it. */
static void (*map(const char *path))(void)
{
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    Elf64_Ehdr header = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
        .e_phoff = sizeof(Elf64_Ehdr), .e_shoff = 512, .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
        .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 4, .e_shstrndx = 2,
    };
    Elf64_Phdr segment = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 2 * PAGE + HUGE,
                          .p_memsz = 2 * PAGE + HUGE, .p_align = PAGE};
    Elf64_Shdr sections[4] = {
        {0},
        section(1, SHT_SYMTAB, 2 * PAGE, HUGE),
        section(9, SHT_STRTAB, 1024, sizeof names),
        section(17, SHT_PROGBITS, 2 * PAGE, HUGE),
    };
    if (file < 0 || ftruncate(file, 2 * PAGE + HUGE))
        exit(1);
    write_at(file, &header, sizeof header, 0);
    write_at(file, &segment, sizeof segment, sizeof header);
    write_at(file, sections, sizeof sections, 512);
    write_at(file, names, sizeof names, 1024);
    write_at(file, code, sizeof code, PAGE);
    char *mapped = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        exit(1);
    return (void (*)(void))(mapped + PAGE);
}

int main(int argc, char **argv)
{
    int files = atoi(argv[1]);
    begin(argc, (char *[]){"", "sparse", argv[2]});
    void (*functions[MOST])(void);
    for (int i = 0; i < files && i < MOST; i++) {
        char path[32];
        snprintf(path, sizeof path, "python3.%d", i);
        functions[i] = map(path);
    }
    do
        for (int i = 0; i < files && i < MOST; i++)
            functions[i]();
    while (spin());
    return 0;
}
