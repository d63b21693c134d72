import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type CertificateAuthority,
  type CertificateUsage,
  generateEcKey,
  issueAuthorityCertificate,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../../src/pki/index.ts'

/** Files of a certificate and its key. */
export interface KeyPairFiles {
  readonly cert: string
  readonly key: string
}

/** Files for both sides of a tunnel server: its front end and its agents, each with a CA of its own. */
export interface TunnelCertificates {
  readonly frontCa: string
  readonly front: KeyPairFiles
  readonly frontClient: KeyPairFiles
  readonly clusterCa: string
  readonly cluster: KeyPairFiles
  readonly agent: KeyPairFiles
}

const dayMs = 24 * 3600 * 1000

async function makeAuthority(commonName: string): Promise<CertificateAuthority> {
  const key = await generateEcKey()
  const order = { commonName, key, now: Date.now(), lifetimeMs: dayMs }
  const { certificate, certPem } = await issueAuthorityCertificate(order)
  return { name: commonName, certificate, bundlePem: certPem, key }
}

/** Makes all certificates of a tunnel; the servers' are valid for `names`. */
export async function writeTunnelCertificates(
  directory: string,
  names: readonly string[] = ['127.0.0.1', 'localhost'],
): Promise<TunnelCertificates> {
  await mkdir(directory, { recursive: true })
  const write = async (name: string, text: string): Promise<string> => {
    const path = join(directory, name)
    await writeFile(path, text, { mode: 0o600 })
    return path
  }
  const issue = async (
    ca: CertificateAuthority,
    commonName: string,
    usage: CertificateUsage,
  ): Promise<KeyPairFiles> => {
    const made = await issueKeyAndCertificate({
      ca,
      subject: { commonName },
      usages: [usage],
      now: Date.now(),
      lifetimeMs: dayMs,
      ...(usage === 'server auth' && { sans: names }),
    })
    return {
      cert: await write(`${commonName}.crt`, made.certPem),
      key: await write(`${commonName}.key`, privateKeyPem(made.key).reveal()),
    }
  }
  const frontCa = await makeAuthority('front-ca')
  const clusterCa = await makeAuthority('cluster-ca')
  return {
    frontCa: await write('front-ca.crt', frontCa.bundlePem),
    front: await issue(frontCa, 'front', 'server auth'),
    frontClient: await issue(frontCa, 'front-client', 'client auth'),
    clusterCa: await write('cluster-ca.crt', clusterCa.bundlePem),
    cluster: await issue(clusterCa, 'cluster', 'server auth'),
    agent: await issue(clusterCa, 'agent', 'client auth'),
  }
}
