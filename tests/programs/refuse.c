/* refuse ERRNO SYSCALL... -- COMMAND ARGS...
 *
 * Runs a command under a seccomp filter that makes these system calls (by number) fail,
 * as container engines do. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MOST 16

int main(int argc, char **argv) {
    struct sock_filter code[2 + 2 * MOST];
    unsigned short length = 0;
    int next = 2;
    unsigned refusal = SECCOMP_RET_ERRNO | (argc > 1 ? (unsigned)atoi(argv[1]) : EPERM);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                  offsetof(struct seccomp_data, nr));
    for (; next < argc && next < 2 + MOST && strcmp(argv[next], "--") != 0; next++) {
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                      (unsigned)atoi(argv[next]), 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, refusal);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (next + 1 >= argc) {
        fprintf(stderr, "usage: refuse ERRNO SYSCALL... -- COMMAND ARGS...\n");
        return 2;
    }
    struct sock_fprog program = {length, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("refuse");
        return 2;
    }
    execvp(argv[next + 1], argv + next + 1);
    perror(argv[next + 1]);
    return 127;
}
