import { generateEcKey, issueAuthorityCertificate } from '../../pki/index.ts'

const hourMs = 3_600_000

/** A root certificate for a test. */
export async function labRoot(commonName: string, now: number, lifetimeMs = hourMs) {
  const key = await generateEcKey()
  const { certificate, certPem } = await issueAuthorityCertificate({
    commonName,
    key,
    now,
    lifetimeMs,
  })
  return { certificate, pem: certPem, key }
}
