import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { isNodeName, isRecord, type KubeObject, Secret } from '../../core/index.ts'
import { type BootstrapToken, isTokenId } from './bootstrap-token.ts'

/** What a token may be used for. */
export type TokenUsage = 'signing' | 'authentication'

/** A token as the cluster keeps it. */
export interface StoredToken {
  readonly token: BootstrapToken
  /** Milliseconds since 1970; absent if it never expires. */
  readonly expiresAt?: number
  readonly usages: ReadonlySet<TokenUsage>
  /** Groups beside `system:bootstrappers`. */
  readonly extraGroups: readonly string[]
  readonly description?: string
  /** How many node certificates it is good for; absent for no such limit. */
  readonly maxUses?: number
  /** How many it has given so far; counted only where there is such a limit. */
  readonly uses?: number
  /** The uids of the requests that were counted last, so that none counts twice. */
  readonly recentUses?: readonly string[]
  /** The only node that may join with it. */
  readonly boundNodeName?: string
  /** The node whose machine it replaces: the name moves to the machine that joins with it. */
  readonly replaceNodeName?: string
}

/** A problem of a token's Secret, with the field it is in. */
export interface TokenProblem {
  readonly field: string
  readonly message: string
}

export const tokenNamespace = 'kube-system'
export const tokenSecretType = 'bootstrap.kubernetes.io/token'
export const usesField = 'uses'
export const recentUsesField = 'recent-uses'
export const replaceField = 'replace-node-name'
const namePrefix = 'bootstrap-token-'
const groupForm = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/
const secretForm = /^[a-z0-9]{16,64}$/

/** The name of the Secret of a token. */
export const secretNameOf = (id: string): string => `${namePrefix}${id}`

/** Whether an object is the Secret of a token, right or wrong. */
export const isTokenSecret = (object: KubeObject): boolean => object['type'] === tokenSecretType

interface Fields {
  readonly id: string
  readonly secret: string
  readonly expiration: string | undefined
  readonly extraGroups: readonly string[]
  readonly maxUses: string | undefined
  readonly uses: string | undefined
  readonly recentUses: readonly string[]
  readonly boundNodeName: string | undefined
  readonly replaceNodeName: string | undefined
  readonly description: string | undefined
  readonly usages: readonly TokenUsage[]
}

/** Reads the Secret of a token: the token, or everything that is wrong with it. */
export function readTokenSecret(object: KubeObject): {
  readonly stored?: StoredToken
  readonly problems: readonly TokenProblem[]
} {
  const fields = fieldsOf(object)
  const problems = problemsOf(fields, object)
  return problems.length > 0 ? { problems } : { problems, stored: storedToken(fields) }
}

function fieldsOf(object: KubeObject): Fields {
  const text = fieldReader(object)
  return {
    id: text('token-id') ?? '',
    secret: text('token-secret') ?? '',
    // Nothing written there is no end, as in Kubernetes.
    expiration: text('expiration') || undefined,
    extraGroups: listOf(text('auth-extra-groups')),
    maxUses: text('max-uses'),
    uses: text(usesField),
    recentUses: listOf(text(recentUsesField)),
    boundNodeName: text('bound-node-name'),
    replaceNodeName: text(replaceField),
    description: text('description'),
    usages: allUsages.filter((usage) => text(`usage-bootstrap-${usage}`) === 'true'),
  }
}

const listOf = (text = ''): string[] => text.split(',').filter((each) => each !== '')

function problemsOf(fields: Fields, { metadata, immutable }: KubeObject): TokenProblem[] {
  const { id, secret, expiration, extraGroups, maxUses, uses } = fields
  const { boundNodeName, replaceNodeName } = fields
  const fits = (text: string | undefined, form: RegExp): boolean =>
    text === undefined || form.test(text)
  const wrongGroup = extraGroups.find((group) => !groupForm.test(group))
  const checks: readonly [isFine: boolean, field: string, message: string][] = [
    [isTokenId(id), 'token-id', 'must be six small letters or digits'],
    [
      metadata.name === secretNameOf(id),
      'token-id',
      `must be the end of the Secret's name, ${namePrefix}<token-id>`,
    ],
    [
      metadata.namespace === tokenNamespace,
      'token-id',
      `only counts in the namespace ${tokenNamespace}`,
    ],
    [secretForm.test(secret), 'token-secret', 'must be 16 to 64 small letters or digits'],
    [
      expiration === undefined || parseTime(expiration) !== undefined,
      'expiration',
      'must be a time such as 2030-01-31T12:00:00Z',
    ],
    [
      wrongGroup === undefined,
      'auth-extra-groups',
      `${JSON.stringify(wrongGroup)} is not of the form system:bootstrappers:<name>`,
    ],
    [fits(maxUses, /^[1-9]\d{0,8}$/), 'max-uses', 'must be a whole number from 1 on'],
    [
      maxUses === undefined || immutable !== true,
      'max-uses',
      'cannot be had by an immutable Secret, since the uses are counted in it',
    ],
    [fits(uses, /^\d{1,9}$/), usesField, 'must be a whole number'],
    [
      boundNodeName === undefined || isNodeName(boundNodeName),
      'bound-node-name',
      'must be the name of a node',
    ],
    [
      replaceNodeName === undefined || (replaceNodeName === boundNodeName && maxUses === '1'),
      replaceField,
      'must equal bound-node-name, and max-uses must be 1: it replaces one machine, once',
    ],
  ]
  return checks
    .filter(([isFine]) => !isFine)
    .map(([, field, message]) => ({ field: `data[${field}]`, message }))
}

function storedToken(fields: Fields): StoredToken {
  const { id, secret, expiration, extraGroups, maxUses, uses, recentUses } = fields
  const { boundNodeName, replaceNodeName, description } = fields
  const expiresAt = expiration === undefined ? undefined : parseTime(expiration)
  return {
    token: { id, secret: new Secret(secret) },
    ...(expiresAt !== undefined && { expiresAt }),
    usages: new Set(fields.usages),
    extraGroups: [...new Set(extraGroups)].sort(),
    ...(description !== undefined && { description }),
    ...(maxUses !== undefined && { maxUses: Number(maxUses) }),
    ...(uses !== undefined && { uses: Number(uses), recentUses }),
    ...(boundNodeName !== undefined && { boundNodeName }),
    ...(replaceNodeName !== undefined && { replaceNodeName }),
  }
}

const allUsages: readonly TokenUsage[] = ['signing', 'authentication']

function fieldReader(secret: KubeObject): (field: string) => string | undefined {
  const { data } = secret
  return (field) => {
    const value = isRecord(data) && Object.hasOwn(data, field) ? data[field] : undefined
    return typeof value === 'string' ? Buffer.from(value, 'base64').toString() : undefined
  }
}

const timeForm = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

function parseTime(text: string): number | undefined {
  const time = timeForm.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}

/** Writes a token as its Secret. */
export function tokenSecret(stored: StoredToken): KubeObject {
  const { token, expiresAt, usages, extraGroups, description, boundNodeName } = stored
  const { maxUses, uses, recentUses, replaceNodeName } = stored
  const fields: Record<string, string | undefined> = {
    'token-id': token.id,
    'token-secret': token.secret.reveal(),
    expiration: expiresAt === undefined ? undefined : isoSeconds(expiresAt),
    description,
    'auth-extra-groups': extraGroups.length > 0 ? extraGroups.join(',') : undefined,
    ...Object.fromEntries([...usages].map((usage) => [`usage-bootstrap-${usage}`, 'true'])),
    'max-uses': maxUses === undefined ? undefined : String(maxUses),
    [usesField]: uses === undefined ? undefined : String(uses),
    [recentUsesField]: recentUses?.join(','),
    'bound-node-name': boundNodeName,
    [replaceField]: replaceNodeName,
  }
  const data: Record<string, string> = {}
  for (const [field, value] of Object.entries(fields))
    if (value !== undefined) data[field] = Buffer.from(value).toString('base64')
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: secretNameOf(token.id), namespace: tokenNamespace },
    type: tokenSecretType,
    data,
  }
}

/** A time as Secrets of tokens have it. */
export const isoSeconds = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

/** Whether a token has died. */
export const isExpired = ({ expiresAt }: StoredToken, now: number): boolean =>
  expiresAt !== undefined && expiresAt <= now

const comparisonKey = randomBytes(32)
const digestOf = (secret: Secret): Buffer =>
  createHmac('sha256', comparisonKey).update(secret.reveal()).digest()

/** Compares secrets by digests of equal length: the time depends neither on their letters nor on which is longer. */
export const isSameSecret = (a: Secret, b: Secret): boolean =>
  timingSafeEqual(digestOf(a), digestOf(b))
