import { CredentialError } from '../credential-error.ts'

/** A source is used after its end. */
export const disposed = (): CredentialError =>
  new CredentialError('DISPOSED', 'this credential source has been disposed of', {
    hint: 'make a new one',
  })

/** What failed a moment ago is not tried again yet. */
export function backingOff(failure: unknown): CredentialError {
  const known = failure instanceof CredentialError ? failure : undefined
  return new CredentialError(
    'BACKING_OFF',
    known
      ? `${known.message} (a moment ago; not tried again yet)`
      : 'no credential could be had a moment ago; not tried again yet',
    {
      cause: failure,
      ...(known?.command !== undefined && { command: known.command }),
      ...(known?.exitCode !== undefined && { exitCode: known.exitCode }),
      hint: known?.hint ?? 'wait some seconds',
    },
  )
}
