import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'

const certificateBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g
const keyBlock = /-----BEGIN ((?:[A-Z0-9]+ )*PRIVATE KEY)-----[^-]+(?:-[^-]+)*-----END \1-----/

/** What is wrong with a certificate and its key; undefined if they can prove an identity together. */
export function problemOfKeyPair(
  certPem: string,
  keyPem: string,
):
  | { readonly code: 'CERTIFICATE_INVALID' | 'CERT_KEY_MISMATCH'; readonly why: string }
  | undefined {
  const invalid = (why: string) => ({ code: 'CERTIFICATE_INVALID' as const, why })
  const chain = parseChain(certPem)
  const leaf = chain?.[0]
  if (!leaf) return invalid('a certificate that is not valid PEM')
  const key = parseKey(keyPem)
  if (!key) return invalid('a key that is not valid PEM, or is encrypted')
  if (leaf.checkPrivateKey(key)) return undefined
  return { code: 'CERT_KEY_MISMATCH', why: 'a key that does not belong to its certificate' }
}

/** When the first certificate of a chain ends, in milliseconds since 1970; undefined if it cannot be told. */
export function certificateNotAfter(certPem: string): number | undefined {
  const time = Date.parse(parseChain(certPem)?.[0]?.validTo ?? '')
  return Number.isNaN(time) ? undefined : time
}

function parseChain(pem: string): X509Certificate[] | undefined {
  try {
    return (pem.match(certificateBlock) ?? []).map((block) => new X509Certificate(block))
  } catch {
    return undefined
  }
}

function parseKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(keyBlock.exec(pem)?.[0] ?? '')
  } catch {
    return undefined // the library's words could quote the key
  }
}
