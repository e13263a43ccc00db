/** Messages that go as one: to send one takes as long as to copy five. */
export class Outbox<Message> {
  readonly #send: (messages: readonly Message[]) => void;
  readonly #later: (flush: () => void) => void;
  #waiting: Message[] = [];

  /** @param later calls back when those that belong together have been posted */
  constructor(send: (messages: readonly Message[]) => void, later: (flush: () => void) => void) {
    this.#send = send;
    this.#later = later;
  }

  post(message: Message): void {
    if (this.#waiting.length === 0) this.#later(this.flush);
    this.#waiting.push(message);
  }

  readonly flush = (): void => {
    const messages = this.#waiting;
    this.#waiting = [];
    if (messages.length > 0) this.#send(messages);
  };
}
