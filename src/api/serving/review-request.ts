import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RequestInfo, UserInfo } from '../../core/index.ts'
import { badRequest } from '../../core/index.ts'
import { fieldValidationOf } from '../content/index.ts'
import { answerReview, type ReviewResource, type ReviewSources } from '../reviews/index.ts'
import { decodeSentBytes } from './decode-sent.ts'
import { responseForm } from './response-form.ts'
import { sendValue } from './send.ts'

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

/** POST of a review: answered, never stored. */
export async function handleReview(call: ReviewCall): Promise<void> {
  const { review, info, request } = call
  const { object } = await decodeSentBytes(await call.readBody(), review, {
    contentType: request.headers['content-type'],
    fieldValidation: fieldValidationOf(info.query.get('fieldValidation'), 'CreateOptions'),
  })
  if (review.namespaced) {
    if (object.metadata.namespace && object.metadata.namespace !== info.namespace)
      throw badRequest(
        'the namespace of the provided object does not match the namespace sent on the request',
      )
    object.metadata.namespace = info.namespace
  }
  const answer = await answerReview(object, call.user, call.sources, call.signal)
  const { encoding } = responseForm(request.headers.accept)
  await sendValue(call.response, 201, answer, { encoding })
}
