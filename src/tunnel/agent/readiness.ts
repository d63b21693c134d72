/** One condition of readiness: its name, and why it does not hold, if it does not. */
export interface Check {
  readonly name: string
  readonly problem: () => string | undefined
}

/** The answer to a question about readiness, in the form of Kubernetes' health endpoints. */
export function readinessAnswer(
  checks: readonly Check[],
  isVerbose: boolean,
): { readonly status: 200 | 503; readonly text: string } {
  const results = checks.map(({ name, problem }) => ({ name, why: problem() }))
  const lines = results.map(({ name, why }) =>
    why === undefined ? `[+]${name} ok\n` : `[-]${name} failed: ${why}\n`,
  )
  // A failure is always told in full.
  if (results.some(({ why }) => why !== undefined)) return { status: 503, text: lines.join('') }
  return { status: 200, text: isVerbose ? `${lines.join('')}check passed\n` : 'ok' }
}
