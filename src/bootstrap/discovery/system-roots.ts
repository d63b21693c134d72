import { readFile } from 'node:fs/promises'
import * as tls from 'node:tls'
import { systemErrorCode } from '../../core/index.ts'

/** Where systems keep their roots, in the order in which Go programs such as kubectl look. */
const places = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/** What names other roots: SSL_CERT_FILE as everywhere, NODE_EXTRA_CA_CERTS as in Node.js. */
export type RootsEnv = Readonly<Record<string, string | undefined>>

/** The roots that this system trusts, as PEM texts; those of Node.js where the system tells of none. */
export async function systemRoots(env: RootsEnv = {}): Promise<readonly string[]> {
  const extra = env['NODE_EXTRA_CA_CERTS'] ? await pemOf(env['NODE_EXTRA_CA_CERTS']) : undefined
  const more = extra === undefined ? [] : [extra]
  const chosen = env['SSL_CERT_FILE'] ? await pemOf(env['SSL_CERT_FILE']) : undefined
  if (chosen !== undefined) return [chosen, ...more]
  const listed = fromNode()
  if (listed.length > 0) return [...listed, ...more]
  for (const place of places) {
    const pem = await pemOf(place)
    if (pem !== undefined) return [pem, ...more]
  }
  return [...tls.rootCertificates, ...more]
}

/** Newer releases of Node.js ask the system themselves, wherever it keeps them. */
function fromNode(): readonly string[] {
  const ask: unknown = Reflect.get(tls, 'getCACertificates')
  const listed: unknown = typeof ask === 'function' ? Reflect.apply(ask, tls, ['system']) : []
  return Array.isArray(listed) ? listed.filter((pem) => typeof pem === 'string') : []
}

async function pemOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (systemErrorCode(error) === undefined) throw error
    return undefined
  }
}
