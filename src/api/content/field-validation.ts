import { invalid } from '../../core/index.ts'

/** What happens to unknown and duplicate fields: dropped, dropped with a warning, or refused. */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

const levels: readonly FieldValidation[] = ['Ignore', 'Strict', 'Warn']

/** The options that carry the parameter, for the error about a wrong one. */
type OptionsKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions'

/** Reads the `fieldValidation` query parameter; without it unknown fields are warned about. */
export function fieldValidationOf(parameter: string | null, options: OptionsKind): FieldValidation {
  if (parameter === null || parameter === '') return 'Warn'
  const level = levels.find((known) => known === parameter)
  if (level !== undefined) return level
  const supported = ['', ...levels].map((known) => `"${known}"`).join(', ')
  throw invalid({ group: 'meta.k8s.io', kind: options }, '', [
    {
      reason: 'FieldValueNotSupported',
      message: `Unsupported value: ${JSON.stringify(parameter)}: supported values: ${supported}`,
      field: 'fieldValidation',
    },
  ])
}
