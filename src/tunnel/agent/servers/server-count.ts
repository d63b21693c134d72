/** How many servers there are, as one source knows it; 0 when it does not know. */
export interface CountSource {
  count(): number
}

/** The count of the last server that said one. */
export class AnsweredCount implements CountSource {
  #last = 0

  /** A server has been reached, and has said how many there are or nothing. */
  heard(count: number | undefined): void {
    if (count !== undefined && count > 0) this.#last = count
  }

  count(): number {
    return this.#last
  }
}

/** Which sources there are, and how they go together. */
export interface CountSources {
  readonly answers: CountSource
  readonly leases?: CountSource
  /** `max` takes the larger of both; otherwise Leases are asked alone if they are counted. */
  readonly source: 'default' | 'max' | ''
}

/** The number of servers to connect to, at least one. */
export function serverCount({ answers, leases, source }: CountSources): number {
  if (leases === undefined) return Math.max(1, answers.count())
  const counted = source === 'max' ? Math.max(leases.count(), answers.count()) : leases.count()
  return Math.max(1, counted)
}
