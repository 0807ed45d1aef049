// The only process of the emulated machine besides the program under test: what tools/emulate puts at /init.
// Starts /program in the folder that /folder names, with the arguments and environment in /arguments and
// /environment (each entry ends in a zero byte), its output going to the second serial port, and ends that
// output with a line "\x04STATUS".
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { kMaxWords = 1024, kMaxText = 1 << 16 };

// The entries of a file, as a null-terminated array.
static char **words(const char *path, const char *first) {
  char **list = calloc(kMaxWords + 2, sizeof *list), *text = malloc(kMaxText);
  int count = 0;
  if (first)
    list[count++] = (char *)first;
  int file = open(path, O_RDONLY);
  ssize_t length = file < 0 ? 0 : read(file, text, kMaxText);
  for (ssize_t begin = 0, at = 0; at < length && count < kMaxWords; ++at)
    if (text[at] == 0) {
      list[count++] = text + begin;
      begin = at + 1;
    }
  return list;
}

int main(void) {
  mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
  mount("proc", "/proc", "proc", 0, NULL);
  mount("sysfs", "/sys", "sysfs", 0, NULL);
  int port = open("/dev/ttyS1", O_RDWR | O_NOCTTY);
  struct termios settings;
  tcgetattr(port, &settings);
  cfmakeraw(&settings);
  cfsetspeed(&settings, B115200);
  tcsetattr(port, TCSANOW, &settings);
  dup2(port, STDOUT_FILENO);
  dup2(port, STDERR_FILENO);
  char **arguments = words("/arguments", "/program"), **environment = words("/environment", NULL);
  char **folder = words("/folder", NULL);
  pid_t child = fork();
  if (child == 0) {
    if (folder[0] && chdir(folder[0]) != 0)
      perror(folder[0]);
    execve("/program", arguments, environment);
    perror("/program");
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  dprintf(port, "\n\x04%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  tcdrain(port);
  sync();
  reboot(RB_POWER_OFF);
  return 0;
}
