import type { DataDirectory } from '../../apiserver/data-directory/index.ts'
import { ApiError, CommandFailed, isRecord } from '../../core/index.ts'
import type { KeyReport } from '../../issuer/index.ts'
import { openClusterAccess } from '../cluster-access.ts'

/** Sends a request about signing keys to the server of a data directory, as its administrator. */
export async function requestKeys(
  directory: DataDirectory,
  request: { readonly method: 'GET' | 'POST'; readonly path: string; readonly body?: object },
  signal: AbortSignal,
): Promise<readonly KeyReport[]> {
  const { client } = await openClusterAccess(directory)
  const { body } = await client.request(request, signal).catch((error: unknown) => {
    throw withHint(error)
  })
  const answer: unknown = JSON.parse(body.toString())
  // It comes from our own server, which renders exactly this type.
  return isRecord(answer) && Array.isArray(answer['keys']) ? (answer['keys'] as KeyReport[]) : []
}

function withHint(error: unknown): unknown {
  const [cause] = error instanceof ApiError ? (error.details?.causes ?? []) : []
  if (!(error instanceof ApiError) || cause?.reason === undefined) return error
  return new CommandFailed(cause.reason, error.message, { hint: cause.message, cause: error })
}
