/** What cannot be done: what happened, where, and what helps. */
export class Refusal extends Error {
  /**
   * @param reason - for programs: INVALID_INPUT, BUDGET_EXCEEDED, CONFLICT, ROUND_CLOSED, UNAVAILABLE, or the server's own
   * @param problem - what happened
   * @param remedy - what to do next
   */
  constructor(
    readonly reason: string,
    readonly problem: string,
    readonly remedy: string = "",
  ) {
    super(remedy === "" ? problem : `${problem} ${remedy}`);
    this.name = "Refusal";
  }
}

/** Refuse unless a condition holds. */
export function check(holds: boolean, problem: string, remedy = "Answer nothing, and ask who sent you here."): asserts holds {
  if (!holds) throw new Refusal("INVALID_INPUT", problem, remedy);
}
