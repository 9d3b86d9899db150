// Between the program's main and its checks.
#pragma once

extern int failures;  // of the running case, on this rank
extern const char* case_name;

// Says why and ends the whole run: without this the other ranks would wait.
_Noreturn void give_up(const char* why);
