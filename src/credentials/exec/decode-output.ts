import { isRecord, Secret } from '../../core/index.ts'
import type { Credential } from '../credential.ts'
import type { CredentialErrorCode } from '../credential-error.ts'
import { isSendableToken } from '../sendable-token.ts'
import { isKnownVersion, v1alpha1 } from './exec-versions.ts'
import { problemOfKeyPair } from './key-pair.ts'
import { type PluginName, pluginError } from './plugin-error.ts'
import { parseRfc3339 } from './rfc3339.ts'
import { parseYamlOutput, YamlUnsound } from './yaml-output.ts'

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
    : await parseYaml(text, refuse)
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

async function parseYaml(text: string, refuse: Refuse): Promise<unknown> {
  try {
    return await parseYamlOutput(text)
  } catch (error) {
    const why = error instanceof YamlUnsound ? error.message : 'is neither JSON nor YAML'
    throw refuse(
      'DECODE',
      `printed ${text.length} characters on stdout that cannot be used: the text ${why}`,
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
