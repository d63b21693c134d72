import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { kubeTime } from '../../core/index.ts'
import type { ExecInfo } from './request.ts'

/** What a plugin hands out: a token, a certificate with its key, or both. */
export interface PluginCredential {
  readonly token?: string
  /** PEM text, the leaf first. */
  readonly clientCertificateData?: string
  /** PEM text. */
  readonly clientKeyData?: string
  /** Milliseconds since 1970, or a date. */
  readonly expiresAt?: number | Date
}

/** The answer to `info`, in the version that was asked for. */
export function renderCredential(info: ExecInfo, credential: PluginCredential): string {
  checkCredential(credential)
  const { apiVersion, dialect } = info
  const { token, clientCertificateData, clientKeyData } = credential
  const fields = {
    ...(token && { token }),
    ...(clientCertificateData && { clientCertificateData, clientKeyData }),
  }
  // Whole seconds, rounded down: a credential must not look valid after its end.
  const endsAtMs = credential.expiresAt === undefined ? undefined : Number(credential.expiresAt)
  const object =
    dialect === 'seed'
      ? {
          kind: 'ExecCredentials',
          apiVersion,
          ...fields,
          ...(endsAtMs !== undefined && { expiry: Math.floor(endsAtMs / 1_000) }),
        }
      : {
          kind: 'ExecCredential',
          apiVersion,
          status: {
            ...(endsAtMs !== undefined && { expirationTimestamp: kubeTime(endsAtMs) }),
            ...fields,
          },
        }
  return `${JSON.stringify(object)}\n`
}

/** Prints the answer to `info`; resolves when it has left, so that the plugin may exit. */
export async function writeCredential(
  info: ExecInfo,
  credential: PluginCredential,
  stdout: Writable,
): Promise<void> {
  if (!stdout.write(renderCredential(info, credential))) await once(stdout, 'drain')
}

function checkCredential(credential: PluginCredential): void {
  const { token, clientCertificateData, clientKeyData, expiresAt } = credential
  if (!clientCertificateData !== !clientKeyData) {
    throw new TypeError('a client certificate and its key go together')
  }
  if (!token && !clientCertificateData) {
    throw new TypeError('a credential needs a token, or a client certificate with its key')
  }
  if (token && /[^\x21-\x7e]/.test(token)) {
    throw new TypeError(
      'the token has characters that no header can carry, perhaps a space or a line break',
    )
  }
  if (expiresAt !== undefined && !Number.isFinite(Number(expiresAt))) {
    throw new TypeError('expiresAt is not a time')
  }
}
