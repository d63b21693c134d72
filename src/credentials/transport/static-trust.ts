import type { TrustSource } from '../provider/transport-config.ts'

/** Authorities that never change. */
export function staticTrust(pem: string): TrustSource {
  return { current: async () => pem, onChange: () => () => {}, dispose: () => {} }
}
