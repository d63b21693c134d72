import type { Credential, CredentialSource } from '../credential.ts'

/** A credential that never changes. */
export function staticSource(credential: Credential): CredentialSource {
  return {
    current: async (signal) => {
      signal?.throwIfAborted()
      return credential
    },
    renew: async () => undefined,
    onRotate: () => () => {},
    dispose: () => {},
  }
}
