import { isRecord, type KubeObject } from '../../core/index.ts'
import { JoinFailed } from './join-failed.ts'

/** Where a request stands: the certificate once it is there, else whether somebody has approved it. */
export type RequestState = { readonly certificatePem: string } | { readonly approved: boolean }

/** Reads where a request stands; throws JoinFailed if nothing will come of it. */
export function stateOfRequest(object: KubeObject): RequestState {
  const status = isRecord(object['status']) ? object['status'] : {}
  const conditions = Array.isArray(status['conditions'])
    ? status['conditions'].filter(isRecord)
    : []
  const { name } = object.metadata
  for (const condition of conditions) {
    if (condition['type'] === 'Denied')
      throw new JoinFailed('request-denied', `request ${name} was denied${whyOf(condition)}`, {
        hint: 'ask the administrator; --force asks anew with another key',
      })
    if (condition['type'] === 'Failed')
      throw new JoinFailed(
        'request-failed',
        `request ${name} was approved, but the signer refused it${whyOf(condition)}`,
        { hint: 'the message says what the signer wants; --force asks anew with another key' },
      )
  }
  const { certificate } = status
  if (typeof certificate === 'string' && certificate !== '')
    return { certificatePem: Buffer.from(certificate, 'base64').toString('utf8') }
  return { approved: conditions.some((condition) => condition['type'] === 'Approved') }
}

function whyOf(condition: Record<string, unknown>): string {
  const said = [condition['reason'], condition['message']].filter(
    (text): text is string => typeof text === 'string' && text !== '',
  )
  return said.length > 0 ? `: ${said.join(': ')}` : ''
}
