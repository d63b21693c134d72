import { ApiError } from '../../core/index.ts'
import { acceptedTypes } from '../../http/index.ts'

/** How an answer is to look: which view of the object, in which encoding. */
export interface ResponseForm {
  readonly view: 'object' | 'table' | 'metadata'
  readonly encoding: 'json' | 'yaml'
}

const plain: ResponseForm = { view: 'object', encoding: 'json' }
const viewOf: Readonly<Record<string, ResponseForm['view']>> = {
  Table: 'table',
  PartialObjectMetadata: 'metadata',
  PartialObjectMetadataList: 'metadata',
}
const encodingOf: Readonly<Record<string, ResponseForm['encoding']>> = {
  'application/json': 'json',
  'application/yaml': 'yaml',
  'application/*': 'json',
  '*/*': 'json',
}

// Clients send the same few Accept headers with every request.
const known = new Map<string, ResponseForm>()
const maxKnown = 256

function negotiate(accept: string): ResponseForm {
  for (const { type, subtype, params } of acceptedTypes(accept)) {
    const encoding = encodingOf[`${type}/${subtype}`]
    if (!encoding) continue
    const wanted = params['as']
    if (wanted === undefined) return { view: 'object', encoding }
    const view = viewOf[wanted]
    if (view && params['g'] === 'meta.k8s.io' && params['v'] === 'v1') return { view, encoding }
  }
  throw new ApiError(
    'NotAcceptable',
    'only the following media types are accepted: application/json, application/yaml, application/json;as=Table;v=v1;g=meta.k8s.io, application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  )
}

/** The best form that the Accept header allows; throws a 406. */
export function responseForm(accept: string | undefined): ResponseForm {
  if (accept === undefined || accept === '' || accept === 'application/json') return plain
  const before = known.get(accept)
  if (before) return before
  const form = negotiate(accept)
  if (known.size >= maxKnown) known.clear()
  known.set(accept, form)
  return form
}
