import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import {
  isRecord,
  parseYaml,
  Secret,
  YamlError,
  type YamlLimits,
  type YamlProblem,
} from '../../core/index.ts'
import { type Credential, isSendableToken } from '../credential.ts'
import type { CredentialErrorCode } from '../errors.ts'
import { isKnownVersion, type PluginName, pluginError, v1alpha1 } from './plugin.ts'

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

const form = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/

/** Reads an RFC 3339 time as Go does; milliseconds since 1970, or undefined for anything else. */
export function parseRfc3339(text: string): number | undefined {
  const found = form.exec(text)
  if (!found) return undefined
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map(Number)
  const [, , , , , , , fraction = '', sign, offsetHour = '0', offsetMinute = '0'] = found
  const date = new Date(0)
  date.setUTCFullYear(year ?? 0, (month ?? 0) - 1, day)
  date.setUTCHours(hour ?? 0, minute, second, Number(fraction.padEnd(3, '0').slice(0, 3)))
  // Dates that do not exist are moved to ones that do, so they do not come out as they went in.
  if (date.toISOString().slice(0, 19) !== text.slice(0, 19)) return undefined
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute)) * 60_000
  return date.getTime() - (sign === '-' ? -offsetMs : offsetMs)
}

type Fields = Readonly<Record<string, unknown>>

/** The credential in what a plugin printed; no message quotes any of it. */
export async function decodeOutput(
  output: Uint8Array,
  apiVersion: string,
  plugin: PluginName,
): Promise<Credential> {
  const refuse: Refuse = (code, what) => pluginError(code, plugin, what)
  const answer = await parseOutput(output, refuse)
  const isFlat = answer['kind'] === 'ExecCredentials' && answer['apiVersion'] === v1alpha1
  checkType(answer, apiVersion, refuse)
  const status = isFlat ? answer : statusOf(answer, refuse)
  const expiresAt = isFlat
    ? unixExpiry(status['expiry'], refuse)
    : timestampExpiry(status['expirationTimestamp'], refuse)
  return { ...credentialOf(status, refuse), ...(expiresAt !== undefined && { expiresAt }) }
}

type Refuse = (code: CredentialErrorCode, what: string) => Error

async function parseOutput(output: Uint8Array, refuse: Refuse): Promise<Fields> {
  const text = decodeText(output, refuse)
  // kubectl's rule too: what begins like JSON has to be JSON, to its end.
  const value = text.trimStart().startsWith('{')
    ? parseJson(text, refuse)
    : await parseYamlOutput(text, refuse)
  if (value === null) return {}
  if (!isRecord(value)) throw refuse('DECODE', 'did not print an object on stdout')
  return value
}

function decodeText(output: Uint8Array, refuse: Refuse): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(output)
  } catch {
    throw refuse('DECODE', 'printed something on stdout that is not text in UTF-8')
  }
}

function parseJson(text: string, refuse: Refuse): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch {
    // The engine's own message quotes the text, and with it the token.
    throw refuse(
      'DECODE',
      `printed ${text.length} characters on stdout that are not one JSON object`,
    )
  }
}

/** A credential nests two levels, and needs no alias. */
const yamlLimits: YamlLimits = {
  maxTokens: 20_000,
  maxDepth: 32,
  maxAliases: 0,
  maxExpandedSize: 4 * 1024 * 1024,
}

const yamlProblems: Readonly<Partial<Record<YamlProblem, string>>> = {
  'multiple-documents': 'has more than one document',
  'too-many-tokens': 'is too long a YAML text',
  'too-deep': 'is nested too deeply',
  aliases: 'has YAML aliases, which no credential needs',
}

async function parseYamlOutput(text: string, refuse: Refuse): Promise<unknown> {
  try {
    return (await parseYaml(text, { limits: yamlLimits, duplicateKeys: 'last' })).value
  } catch (error) {
    const known = error instanceof YamlError ? yamlProblems[error.problem] : undefined
    throw refuse(
      'DECODE',
      `printed ${text.length} characters on stdout that cannot be used: the text ${known ?? 'is neither JSON nor YAML'}`,
    )
  }
}

function checkType({ kind, apiVersion }: Fields, wanted: string, refuse: Refuse): void {
  const flat = apiVersion === v1alpha1 ? ['ExecCredentials'] : []
  if (!['', 'ExecCredential', ...flat].some((known) => (kind ?? '') === known)) {
    throw refuse('DECODE', 'printed an object of another kind than ExecCredential')
  }
  if (apiVersion === wanted) return
  const words = versionWords(apiVersion ?? '')
  throw refuse('VERSION_MISMATCH', `is configured for ${wanted} and answered in ${words}`)
}

function versionWords(apiVersion: unknown): string {
  if (apiVersion === '') return 'no version at all'
  if (typeof apiVersion !== 'string' || !isKnownVersion(apiVersion)) return 'another version'
  return apiVersion
}

function statusOf(answer: Fields, refuse: Refuse): Fields {
  const status = answer['status']
  if (status == null) throw refuse('NO_STATUS', 'printed an ExecCredential without a status')
  if (!isRecord(status)) throw refuse('DECODE', 'printed a status that is not an object')
  return status
}

function credentialOf(status: Fields, refuse: Refuse): Omit<Credential, 'expiresAt'> {
  const [token, certPem, keyPem] = ['token', 'clientCertificateData', 'clientKeyData'].map((name) =>
    textOf(status, name, refuse),
  )
  if (!token && !certPem && !keyPem) {
    throw refuse('NO_CREDENTIAL', 'gave neither a token nor a client certificate with its key')
  }
  if (!certPem !== !keyPem) {
    const [given, missing] = certPem ? ['certificate', 'key'] : ['key', 'certificate']
    throw refuse('NO_CREDENTIAL', `gave a client ${given} without its ${missing}`)
  }
  if (token) checkToken(token, refuse)
  return {
    ...(token && { token: new Secret(token) }),
    ...(certPem && keyPem && { clientCertificate: keyPair(certPem, keyPem, refuse) }),
  }
}

function textOf(status: Fields, name: string, refuse: Refuse): string {
  const value = status[name] ?? ''
  if (typeof value !== 'string') throw refuse('DECODE', `gave a ${name} that is not a string`)
  return value
}

function checkToken(token: string, refuse: Refuse): void {
  if (isSendableToken(token)) return
  throw refuse(
    'TOKEN_INVALID',
    'gave a token that cannot be sent: it has spaces, line breaks, or characters that are not ASCII',
  )
}

function keyPair(certPem: string, keyPem: string, refuse: Refuse) {
  const problem = problemOfKeyPair(certPem, keyPem)
  if (problem) throw refuse(problem.code, `gave ${problem.why}`)
  return { certPem, keyPem: new Secret(keyPem) }
}

/** What Go writes for a time that was never set. */
const goZeroTimeMs = Date.parse('0001-01-01T00:00:00Z')

function timestampExpiry(value: unknown, refuse: Refuse): number | undefined {
  if (value == null) return undefined
  const time = typeof value === 'string' ? parseRfc3339(value) : undefined
  if (time !== undefined) return time === goZeroTimeMs ? undefined : time
  throw refuse('DECODE', 'gave an expirationTimestamp that is not a time as RFC 3339 writes it')
}

function unixExpiry(value: unknown, refuse: Refuse): number | undefined {
  if (value == null || value === 0) return undefined
  if (Number.isSafeInteger(value)) return Number(value) * 1_000
  throw refuse('DECODE', 'gave an expiry that is not a whole number of seconds since 1970')
}
