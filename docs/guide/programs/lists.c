// Builds lists: one of many small nodes, one of a few large ones.
#include <stdlib.h>

struct node {
    struct node *next;
};

__attribute__((noinline)) static struct node *many_small(void) {
    struct node *list = NULL;
    for (int i = 0; i < 20000; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = list;
        list = node;
    }
    return list;
}

__attribute__((noinline)) static struct node *few_large(void) {
    struct node *list = NULL;
    for (int i = 0; i < 20; i++) {
        struct node *node = malloc(1 << 17);
        node->next = list;
        list = node;
    }
    return list;
}

int main(void) {
    return !many_small() || !few_large();
}
