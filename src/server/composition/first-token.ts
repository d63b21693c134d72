import { readFile } from 'node:fs/promises'
import { CommandFailed, type Logger, systemErrorCode, WrongUsage } from '../../core/index.ts'
import {
  type BootstrapToken,
  BootstrapTokenInvalid,
  createToken,
  nodeTokenGroup,
  parseBootstrapToken,
  weaknessOf,
} from '../../discovery/index.ts'
import type { FeatureContext } from '../feature.ts'
import type { ServerOptions } from '../options/index.ts'

/** Reads the token that an operator has chosen before there was a cluster. */
export async function readFirstToken(
  options: ServerOptions,
  log: Logger,
): Promise<BootstrapToken | undefined> {
  const { bootstrapToken, bootstrapTokenFile: path } = options
  if (bootstrapToken && path !== undefined)
    throw new WrongUsage('--bootstrap-token and --bootstrap-token-file exclude each other')
  const text = path === undefined ? bootstrapToken?.reveal() : await readText(path)
  if (text === undefined) return undefined
  const token = parsed(text.trim(), path)
  const weakness = weaknessOf(token)
  if (weakness !== undefined)
    log.warn({ token: token.id, weakness }, 'the bootstrap token is easier to guess than need be')
  return token
}

async function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((cause: unknown) => {
    const why = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('TOKEN_UNREADABLE', `cannot read ${path}: ${why}`, { cause })
  })
}

function parsed(text: string, path: string | undefined): BootstrapToken {
  try {
    return parseBootstrapToken(text)
  } catch (cause) {
    if (!(cause instanceof BootstrapTokenInvalid)) throw cause
    const where = path === undefined ? '--bootstrap-token' : path
    throw new CommandFailed('TOKEN_MALFORMED', `${where}: ${cause.message}`, {
      hint: 'a token looks like abcdef.0123456789abcdef',
      cause,
    })
  }
}

/** Makes that token in the cluster, as `token create` would. */
export async function createFirstToken(
  token: BootstrapToken,
  { view, options, clock, log, signal }: FeatureContext,
): Promise<void> {
  const ttlMs = options.bootstrapTokenTtl
  const stored = {
    token,
    usages: new Set(['signing', 'authentication'] as const),
    extraGroups: [nodeTokenGroup],
    description: 'given at the first start',
    ...(ttlMs > 0 && { expiresAt: clock.now() + ttlMs }),
  }
  try {
    await createToken(view, stored, signal)
  } catch (error) {
    // A first start that was cut off has made it already.
    if (!(error instanceof CommandFailed && error.code === 'TOKEN_EXISTS')) throw error
  }
  log.info({ tokenId: token.id }, 'machines may join with the given token')
}
