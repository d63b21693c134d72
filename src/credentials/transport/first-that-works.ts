/** What came of several attempts: the first that worked, or why each of them failed. */
export type Outcome<T> =
  | { readonly index: number; readonly value: T }
  | { readonly failures: readonly unknown[] }

/** How attempts take turns. */
export interface Turns<T> {
  /** How long one may take before the next is begun beside it. */
  readonly headStartMs: number
  /** Takes back what worked too late. */
  readonly undo: (late: T) => void
}

/** Makes attempts one after the other, the next already when one takes long, until one works. */
export function firstThatWorks<T>(
  attempts: readonly (() => Promise<T>)[],
  { headStartMs, undo }: Turns<T>,
): Promise<Outcome<T>> {
  const failures: unknown[] = []
  let begun = 0
  let failed = 0
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  return new Promise((resolve) => {
    const end = (outcome: Outcome<T>): void => {
      isOver = true
      clearTimeout(timer)
      resolve(outcome)
    }
    const beginNext = (): void => {
      clearTimeout(timer)
      const index = begun++
      const attempt = attempts[index]
      if (isOver || !attempt) return
      if (begun < attempts.length) timer = setTimeout(beginNext, headStartMs)
      attempt().then(
        (value) => (isOver ? undo(value) : end({ index, value })),
        (error: unknown) => {
          failures[index] = error
          failed++
          if (isOver) return
          if (failed === attempts.length) end({ failures })
          else if (begun < attempts.length) beginNext()
        },
      )
    }
    if (attempts.length === 0) end({ failures })
    else beginNext()
  })
}
