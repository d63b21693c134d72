import type { AskOutcome } from './outcome-class.ts'

/** Asks for paths in turn, with one client, and says what became of each. */
export function ask(
  library: object,
  order: {
    readonly kubeconfig: string
    readonly paths: readonly string[]
    readonly home: string
    readonly kuberc?: string
    readonly rules?: object
  },
): Promise<AskOutcome[]>
