import type { IncomingMessage } from 'node:http'
import { ApiError, badRequest, CommandFailed, isRecord } from '../../core/index.ts'
import {
  beginRotation,
  type KeyKeeper,
  type KeyReport,
  keyRotationPath,
  readSigningKeys,
  replaceKeys,
  signingKeysPath,
} from '../../issuer/index.ts'
import { type PathRoute, sendJson } from './route.ts'

/** What the routes work with; no keeper where the keys are in files. */
export interface SigningKeyRouteDeps {
  readonly keeper: KeyKeeper | undefined
  readonly readBody: (request: IncomingMessage, signal: AbortSignal) => Promise<Buffer>
}

/**
 * Returns the signing keys without their private keys, and rotates them. Each path is a permission
 * of its own in RBAC (`nonResourceURLs`), which only administrators have by default.
 */
export function signingKeyRoutes({ keeper, readBody }: SigningKeyRouteDeps): PathRoute[] {
  const withKeys =
    (run: (keeper: KeyKeeper) => Promise<readonly KeyReport[]>) =>
    (): Promise<readonly KeyReport[]> =>
      asStatus(() => run(keeper ?? keysInFiles()))
  return [
    {
      path: signingKeysPath,
      handle: async (_request, response, signal) => {
        const read = withKeys((keys) => readSigningKeys(keys, signal))
        sendJson(response, { keys: await read() })
      },
    },
    {
      path: keyRotationPath,
      methods: ['POST'],
      handle: async ({ request }, response, signal) => {
        const { now, showMs } = rotationIn(await readBody(request, signal))
        const rotate = withKeys((keys) =>
          now ? replaceKeys(keys, signal) : beginRotation(keys, signal, showMs),
        )
        sendJson(response, { keys: await rotate() })
      },
    },
  ]
}

function rotationIn(body: Buffer): { readonly now: boolean; readonly showMs?: number } {
  const fields = parse(body)
  const unknown = Object.keys(fields).find((name) => name !== 'now' && name !== 'showMs')
  const { now = false, showMs } = fields
  if (unknown !== undefined)
    throw badRequest(`unknown field ${JSON.stringify(unknown.slice(0, 40))}`)
  if (typeof now !== 'boolean') throw badRequest('now must be true or false')
  if (showMs === undefined) return { now }
  if (typeof showMs !== 'number' || !Number.isSafeInteger(showMs) || showMs < 0 || now)
    throw badRequest('showMs must be a number of milliseconds, and cannot be combined with now')
  return { now, showMs }
}

function parse(body: Buffer): Record<string, unknown> {
  try {
    const fields: unknown = JSON.parse(body.toString() || '{}')
    if (isRecord(fields)) return fields
  } catch {
    // Without its cause: the message would quote the body.
  }
  throw badRequest('the body must be a JSON object')
}

function keysInFiles(): never {
  throw new CommandFailed(
    'KEYS_IN_FILES',
    'the server reads its keys from files (--service-account-signing-key-file), so they cannot be rotated here',
    {
      hint: 'add the next public key to --service-account-key-file of every server, wait until caches have it, then change the signing key; or omit both flags to keep the keys in the cluster',
    },
  )
}

/** Sends code and hint of a CommandFailed as a cause of the Status. */
async function asStatus<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error
    const { code, message, hint = '' } = error
    throw new ApiError('Conflict', message, {
      details: { causes: [{ reason: code, message: hint }] },
    })
  }
}
