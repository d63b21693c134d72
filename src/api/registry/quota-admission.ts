import {
  type Admission,
  forbidden,
  goQuote,
  invalid,
  type KubeObject,
  wellKnown,
} from '../../core/index.ts'
import { namespace } from '../kinds/namespace.ts'

/** Annotations of a Namespace that take precedence over the limits of the server. */
export const quotaAnnotations = {
  objects: 'sallyport.dev/max-objects',
  bytes: 'sallyport.dev/max-bytes',
} as const

const unitOf: Readonly<Record<string, number>> = { '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 }

/** A whole number, for bytes with a unit as in `64Mi`; undefined if it is something else. */
export function parseLimit(text: unknown): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,15})(Ki|Mi|Gi)?$/.exec(String(text)) ?? []
  return digits === undefined ? undefined : Number(digits) * (unitOf[unit] ?? 1)
}

/** Only administrators set or change the limits of a namespace, by whichever verb and subresource. */
export const quotaAdmission: Admission = ({ kind, operation, object, oldObject, user, name }) => {
  const isNamespace =
    kind.group === namespace.kind.group && kind.resource === namespace.kind.resource
  if (!isNamespace || operation === 'delete' || !object) return
  for (const annotation of Object.values(quotaAnnotations)) {
    const given = limitIn(object, annotation)
    if (given === limitIn(oldObject, annotation)) continue
    if (!user.groups.includes(wellKnown.masters))
      throw forbidden(kind, name, `only administrators set the annotation ${annotation}`)
    if (given !== undefined && parseLimit(given) === undefined)
      throw invalid(kind, name, [
        {
          reason: 'FieldValueInvalid',
          field: `metadata.annotations[${annotation}]`,
          message: `Invalid value: ${goQuote(given)}: must be a whole number, with Ki, Mi or Gi if need be`,
        },
      ])
  }
}

const limitIn = (object: KubeObject | undefined, annotation: string): string | undefined =>
  object?.metadata.annotations?.[annotation]
