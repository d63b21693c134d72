import type { IncomingMessage, ServerResponse } from 'node:http'
import type { KubeObject, ObjectMeta, RequestInfo, UserInfo } from '../../core/index.ts'
import { badRequest } from '../../core/index.ts'
import { answerReview, type ReviewResource, type ReviewSources } from '../reviews/index.ts'
import { toPartialObjectMetadata } from '../table/index.ts'
import { wantsPretty } from './api-call.ts'
import { decodeSentBytes } from './decode-sent.ts'
import { notAcceptable, responseForm } from './response-form.ts'
import { sendValue } from './send.ts'
import { warn } from './warn.ts'
import { writeParametersOf } from './write-parameters.ts'

/** One review that somebody asks for. */
export interface ReviewCall {
  readonly review: ReviewResource
  readonly sources: ReviewSources
  readonly info: RequestInfo
  readonly user: UserInfo
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly signal: AbortSignal
  readonly readBody: () => Promise<Buffer>
}

function placeInNamespace({ review, info }: ReviewCall, { metadata }: KubeObject): void {
  if (!review.namespaced) delete metadata.namespace
  else if (metadata.namespace && metadata.namespace !== info.namespace)
    throw badRequest(
      'the namespace of the provided object does not match the namespace sent on the request',
    )
  else metadata.namespace = info.namespace
}

/** Nobody but the server says these of an object, and of a review it says none of them. */
function wipeSystemFields({ metadata }: KubeObject): void {
  delete metadata.uid
  delete metadata.creationTimestamp
  delete metadata.deletionTimestamp
  delete metadata.deletionGracePeriodSeconds
  delete (metadata as { selfLink?: unknown }).selfLink
  delete (metadata as { managedFields?: unknown }).managedFields
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
  const { object, warnings } = await decodeSentBytes(await call.readBody(), review, {
    contentType: request.headers['content-type'],
    fieldValidation,
  })
  warn(call, warnings)
  placeInNamespace(call, object)
  wipeSystemFields(object)
  const answer = await answerReview(object, call.user, call.sources, call.signal)
  const viewed = form.view === 'metadata' ? toPartialObjectMetadata(answer) : answer
  const options = { encoding: form.encoding, pretty: wantsPretty(call) }
  await sendValue(call.response, 201, withoutEmptyName(viewed), options)
}
