import { ApiError } from '../../core/index.ts'

/** The kinds of patch that can be applied. */
export type PatchType = 'json' | 'merge' | 'strategic'

/** The media type that announces each kind of patch. */
export const patchMediaTypes = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
} as const satisfies Readonly<Record<string, PatchType>>

const known: ReadonlyMap<string, PatchType> = new Map(Object.entries(patchMediaTypes))

const applySentence =
  'server-side apply is not supported here: run `kubectl apply` without --server-side ' +
  '(client-side apply), or send one of these patch types instead'

/** The kind of patch that a Content-Type header announces; throws a 415 that names the way out. */
export function patchTypeOf(contentType: string | undefined): PatchType {
  const mediaType = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const type = known.get(mediaType)
  if (type !== undefined) return type
  const accepted = [...known.keys()].join(', ')
  const problem = mediaType.startsWith('application/apply-patch+')
    ? `${applySentence}: ${accepted}`
    : `the body of the request was in an unknown format - accepted media types include: ${accepted}`
  throw new ApiError('UnsupportedMediaType', problem)
}
