// A process with memory that does not answer: the page above its stack.
//
//   silent file DIRECTORY USER    a page of a FUSE file, mounted there, whose daemon does not answer
//   silent fault                  a page whose faults go to userfaultfd, which nobody reads
//
// It prints the id of the process, which then computes on a deep stack, until its input ends. The
// mount is in a namespace of its own, and ends with it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <poll.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 256, SIZE = PAGES * PAGE, SILENT = SIZE - PAGE, FILE_ID = 2 };

static void check(int is_right, const char *what) {
    if (!is_right) {
        perror(what);
        exit(2);
    }
}

static volatile unsigned long counter;

__attribute__((noinline)) static void silent_leaf(void) {
    while (counter < ULONG_MAX)
        counter++;
}

__attribute__((noinline)) static void silent_descend(int depth) {
    volatile char frame[256];
    frame[0] = (char)depth;
    if (depth > 0)
        silent_descend(depth - 1);
    else
        silent_leaf();
    frame[1] = frame[0];
}

static void compute(void) {
    puts("ready");
    fflush(stdout);
    silent_descend(1000);
}

// Computes on a stack that ends where the silent page begins.
static void compute_on(char *stack) {
    static ucontext_t context, back;
    check(getcontext(&context) == 0, "getcontext");
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = SILENT;
    context.uc_link = &back;
    makecontext(&context, compute, 0);
    check(swapcontext(&back, &context) == 0, "swapcontext");
}

static void on_fault(void) {
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    check(fd >= 0, "userfaultfd");
    struct uffdio_api api = {.api = UFFD_API};
    check(ioctl(fd, UFFDIO_API, &api) == 0, "UFFDIO_API");
    char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(stack != MAP_FAILED, "mmap");
    // One mapping, of which only the last page is not there.
    check(madvise(stack, SIZE, MADV_NOHUGEPAGE) == 0, "madvise");
    struct uffdio_register all = {
        .range = {.start = (uintptr_t)stack, .len = SIZE},
        .mode = UFFDIO_REGISTER_MODE_MISSING,
    };
    memset(stack, 0, SILENT);
    check(ioctl(fd, UFFDIO_REGISTER, &all) == 0, "UFFDIO_REGISTER");
    compute_on(stack);
}

static void on_file(const char *path) {
    int fd = open(path, O_RDONLY);
    check(fd >= 0, path);
    char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    check(stack != MAP_FAILED, "mmap");
    memset(stack, 0, SILENT);
    compute_on(stack);
}

static void answer(int fuse, const struct fuse_in_header *in, const void *data, size_t size) {
    char out[sizeof(struct fuse_out_header) + PAGE];
    struct fuse_out_header header = {.len = (uint32_t)(sizeof header + size), .unique = in->unique};
    memcpy(out, &header, sizeof header);
    memcpy(out + sizeof header, data, size);
    check(write(fuse, out, header.len) == (ssize_t)header.len, "answer");
}

static struct fuse_attr attributes(uint64_t id) {
    struct fuse_attr attr = {.ino = id, .nlink = 1, .blksize = PAGE};
    attr.mode = id == FILE_ID ? S_IFREG | 0644 : S_IFDIR | 0755;
    attr.size = id == FILE_ID ? SIZE : 0;
    return attr;
}

static void serve(int fuse) {
    static char request[FUSE_MIN_READ_BUFFER + PAGE];
    static const char zeros[PAGE];
    ssize_t length = read(fuse, request, sizeof request);
    if (length < (ssize_t)sizeof(struct fuse_in_header))
        return;
    struct fuse_in_header *in = (void *)request;
    const void *body = request + sizeof *in;
    switch (in->opcode) {
    case FUSE_INIT: {
        struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = PAGE};
        return answer(fuse, in, &out, sizeof out);
    }
    case FUSE_LOOKUP: {
        struct fuse_entry_out out = {.nodeid = FILE_ID, .entry_valid = 1000, .attr_valid = 1000};
        out.attr = attributes(FILE_ID);
        return answer(fuse, in, &out, sizeof out);
    }
    case FUSE_GETATTR: {
        struct fuse_attr_out out = {.attr_valid = 1000, .attr = attributes(in->nodeid)};
        return answer(fuse, in, &out, sizeof out);
    }
    case FUSE_OPEN: {
        struct fuse_open_out out = {.open_flags = FOPEN_KEEP_CACHE};
        return answer(fuse, in, &out, sizeof out);
    }
    case FUSE_READ: {
        const struct fuse_read_in *wanted = body;
        if (wanted->offset + wanted->size > SILENT)
            return;
        return answer(fuse, in, zeros, wanted->size < PAGE ? wanted->size : PAGE);
    }
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        return;
    default:
        return answer(fuse, in, zeros, 0);
    }
}

static int mounted(const char *directory) {
    check(unshare(CLONE_NEWNS) == 0, "unshare");
    check(mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "a private tree");
    int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    check(fuse >= 0, "/dev/fuse");
    char options[100];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,max_read=%d",
             fuse, PAGE);
    check(mount("silent", directory, "fuse", 0, options) == 0, "mount");
    return fuse;
}

static void become(unsigned user) {
    check(setgid(user) == 0 && setuid(user) == 0, "setuid");
    check(prctl(PR_SET_DUMPABLE, 1) == 0, "PR_SET_DUMPABLE");
}

int main(int argc, char **argv) {
    int of_file = argc == 4 && strcmp(argv[1], "file") == 0;
    check(of_file || (argc == 2 && strcmp(argv[1], "fault") == 0), "arguments");
    int fuse = of_file ? mounted(argv[2]) : -1;
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        printf("%d\n", getpid());
        fflush(stdout);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!of_file)
            on_fault();
        close(fuse);
        become((unsigned)atoi(argv[3]));
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        char path[4096];
        snprintf(path, sizeof path, "%s/file", argv[2]);
        on_file(path);
    }
    struct pollfd both[] = {{.fd = 0, .events = POLLIN}, {.fd = fuse, .events = POLLIN}};
    while (poll(both, 2, -1) > 0 && !(both[0].revents)) {
        if (both[1].revents)
            serve(fuse);
    }
    kill(child, SIGKILL);
    // Ends what waits for the file.
    if (of_file)
        close(fuse);
    waitpid(child, NULL, 0);
    return 0;
}
