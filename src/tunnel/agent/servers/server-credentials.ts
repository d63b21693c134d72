import { readFile } from 'node:fs/promises'
import { SallyportError, Secret, systemErrorCode } from '../../../core/index.ts'

/** A file that proves who the agent or the server is cannot be used. */
class AgentCredentialUnusable extends SallyportError {
  readonly code = 'TUNNEL_CREDENTIAL_UNUSABLE'
}

/** Where the proofs of identity are. */
export interface CredentialFiles {
  readonly caCert: string
  readonly agentCert: string
  readonly agentKey: string
  readonly serviceAccountTokenPath: string
}

/** The proofs of identity as the files have them now. */
export interface ServerCredentials {
  readonly ca: string
  readonly cert?: string
  readonly key?: Secret
  readonly token?: Secret
}

const pemCertificate = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/

/** Reads all files anew, so that whatever rotates them needs to tell nobody. */
export async function readCredentials(files: CredentialFiles): Promise<ServerCredentials> {
  const [ca, cert, key, token] = await Promise.all([
    read(files.caCert, '--ca-cert'),
    readIfNamed(files.agentCert, '--agent-cert'),
    readIfNamed(files.agentKey, '--agent-key'),
    readIfNamed(files.serviceAccountTokenPath, '--service-account-token-path'),
  ])
  // TLS passes over what it cannot read, and would then blame the server.
  if (!pemCertificate.test(ca)) {
    throw new AgentCredentialUnusable(
      `${files.caCert}, named by --ca-cert, holds no certificate in PEM form`,
    )
  }
  const trimmed = token?.trim()
  if (trimmed !== undefined && !/^[\x21-\x7e]+$/.test(trimmed)) {
    throw new AgentCredentialUnusable(
      `${files.serviceAccountTokenPath}, named by --service-account-token-path, holds no token`,
    )
  }
  return {
    ca,
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key: new Secret(key) }),
    ...(trimmed !== undefined && { token: new Secret(trimmed) }),
  }
}

const readIfNamed = (path: string, flag: string): Promise<string> | undefined =>
  path === '' ? undefined : read(path, flag)

async function read(path: string, flag: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown error'
    throw new AgentCredentialUnusable(`cannot read ${path}, named by ${flag}: ${code}`, { cause })
  }
}
