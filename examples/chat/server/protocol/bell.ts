/** Waits for a ring, which is not lost when nobody waits yet. */
export class Bell {
  #isRung = false;
  #answer: (() => void) | undefined;

  ring(): void {
    this.#isRung = true;
    this.#answer?.();
  }

  /** Gives false when it has not been rung for so long. */
  async rung(withinMs: number): Promise<boolean> {
    if (!this.#isRung) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#answer = resolve;
        timer = setTimeout(resolve, withinMs);
      });
      clearTimeout(timer);
      this.#answer = undefined;
    }
    const wasRung = this.#isRung;
    this.#isRung = false;
    return wasRung;
  }
}
