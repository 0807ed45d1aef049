int answer(void) { return ANSWER; }
