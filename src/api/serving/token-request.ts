import { invalid, type KubeObject } from '../../core/index.ts'
import type { ExtraSubresource } from '../discovery/index.ts'
import { dropUnkept } from '../registry/prepare-update.ts'
import type { IssueToken } from '../reviews/index.ts'
import {
  type BodyCall,
  ownerOf,
  placeInNamespace,
  wantsPretty,
  warn,
  writeParametersOf,
} from './call.ts'
import type { RequestBodies } from './request-bodies.ts'
import type { ResourceHandler } from './resource-api.ts'
import { notAcceptable, responseForm, sendValue } from './response.ts'
import { toPartialObjectMetadata } from './table.ts'
import { decodeSent } from './write.ts'

const kind = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' } as const

/** How discovery shows `serviceaccounts/token`. */
export const tokenSubresource: ExtraSubresource = {
  group: '',
  version: 'v1',
  resource: 'serviceaccounts',
  name: 'token',
  kind,
  verbs: ['create'],
}

/** What TokenRequests are answered with. */
export interface TokenRequestParts {
  readonly bodies: RequestBodies
  readonly issue: IssueToken
}

/** POST of a TokenRequest: answered with a token, never stored. */
export function tokenRequestHandler({ bodies, issue }: TokenRequestParts): ResourceHandler {
  return async ({ request, info, authentication, audit }, response, signal) => {
    const form = responseForm(request.headers.accept)
    if (form.view === 'table') throw notAcceptable()
    const { user } = authentication
    const owner = ownerOf(authentication)
    const call: BodyCall = { info, user, request, response, signal, bodies, owner }
    const { fieldValidation, dryRun } = writeParametersOf(info.query, 'CreateOptions')
    const { object, warnings } = await decodeSent(call, kind, fieldValidation)
    placeAtAccount(object, info.namespace, info.name)
    const issued = await issue({ object, asker: user, dryRun }, signal)
    warn(call, [...warnings, ...issued.warnings])
    audit?.annotate('authentication.kubernetes.io/issued-credential-id', issued.credentialId)
    const options = { encoding: form.encoding, pretty: wantsPretty(call) }
    const shown = form.view === 'metadata' ? toPartialObjectMetadata(issued.object) : issued.object
    await sendValue(response, 201, shown, options)
  }
}

/** The request is for the service account in the URL, whatever it leaves out. */
function placeAtAccount(object: KubeObject, namespace: string, name: string): void {
  const account = { ...kind, resource: 'serviceaccounts', namespaced: true }
  placeInNamespace(account, namespace, object)
  const given = object.metadata.name
  if (given !== '' && given !== name)
    throw invalid(kind, name, [
      {
        reason: 'FieldValueInvalid',
        message: `Invalid value: ${JSON.stringify(given)}: must match the service account name if specified`,
        field: 'metadata.name',
      },
    ])
  object.metadata.name = name
  dropUnkept(object.metadata)
}
