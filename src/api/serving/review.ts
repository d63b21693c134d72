import type { KubeObject, ObjectMeta } from '../../core/index.ts'
import { dropUnkept } from '../registry/prepare-update.ts'
import { answerReview, type ReviewResource, type ReviewSources } from '../reviews/index.ts'
import { type BodyCall, placeInNamespace, wantsPretty, warn, writeParametersOf } from './call.ts'
import { notAcceptable, responseForm, sendValue } from './response.ts'
import { toPartialObjectMetadata } from './table.ts'
import { decodeSent } from './write.ts'

/** One review that somebody asks for. */
export interface ReviewCall extends BodyCall {
  readonly review: ReviewResource
  readonly sources: ReviewSources
}

/** Nobody but the server says these of an object, and of a review it says none of them. */
function wipeSystemFields({ metadata }: KubeObject): void {
  delete metadata.uid
  delete metadata.creationTimestamp
  delete metadata.deletionTimestamp
  delete metadata.deletionGracePeriodSeconds
  dropUnkept(metadata)
}

/** A review has no name unless its sender gave it one. */
const withoutEmptyName = <T extends { readonly metadata: ObjectMeta }>(object: T) => {
  const { name, ...others } = object.metadata
  return name === '' ? { ...object, metadata: others } : object
}

/** POST of a review: answered, never stored. */
export async function handleReview(call: ReviewCall): Promise<void> {
  const { review, info, request } = call
  const form = responseForm(request.headers.accept)
  if (form.view === 'table') throw notAcceptable()
  const { fieldValidation } = writeParametersOf(info.query, 'CreateOptions')
  const { object, warnings } = await decodeSent(call, review, fieldValidation)
  warn(call, warnings)
  placeInNamespace(review, info.namespace, object)
  wipeSystemFields(object)
  const answer = await answerReview(
    { ...object, kind: review.kind },
    call.user,
    call.sources,
    call.signal,
  )
  const viewed = form.view === 'metadata' ? toPartialObjectMetadata(answer) : answer
  const options = { encoding: form.encoding, pretty: wantsPretty(call) }
  await sendValue(call.response, 201, withoutEmptyName(viewed), options)
}
