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
/** The media types that can be asked for, and those that an error message names. */
interface Offer {
  readonly encodings: Readonly<Record<string, ResponseForm['encoding']>>
  readonly named: string
  // Clients send the same few Accept headers with every request.
  readonly known: Map<string, ResponseForm>
}

const wholeAnswers: Offer = {
  encodings: {
    'application/json': 'json',
    'application/yaml': 'yaml',
    'application/*': 'json',
    '*/*': 'json',
  },
  named: 'application/json, application/yaml',
  known: new Map(),
}

const streams: Offer = {
  encodings: { 'application/json': 'json', 'application/*': 'json', '*/*': 'json' },
  named: 'application/json;stream=watch',
  known: new Map(),
}

const maxKnown = 256

/** 406 that says what can be had. */
export const notAcceptable = (named: string = wholeAnswers.named): ApiError =>
  new ApiError('NotAcceptable', `only the following media types are accepted: ${named}`)

function negotiate(accept: string, { encodings, named }: Offer): ResponseForm {
  for (const { type, subtype, params } of acceptedTypes(accept)) {
    const encoding = encodings[`${type}/${subtype}`]
    if (!encoding) continue
    const wanted = params['as']
    if (wanted === undefined) return { view: 'object', encoding }
    const view = viewOf[wanted]
    if (view && params['g'] === 'meta.k8s.io' && params['v'] === 'v1') return { view, encoding }
  }
  throw notAcceptable(named)
}

function bestForm(accept: string | undefined, offer: Offer): ResponseForm {
  if (accept === undefined || accept === '' || accept === 'application/json') return plain
  const before = offer.known.get(accept)
  if (before) return before
  const form = negotiate(accept, offer)
  if (offer.known.size >= maxKnown) offer.known.clear()
  offer.known.set(accept, form)
  return form
}

/** The best form of a whole answer that the Accept header allows; throws a 406. */
export const responseForm = (accept: string | undefined): ResponseForm =>
  bestForm(accept, wholeAnswers)

/** The best form of the events of a watch that the Accept header allows; throws a 406. */
export const streamForm = (accept: string | undefined): ResponseForm => bestForm(accept, streams)
