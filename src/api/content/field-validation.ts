/** What happens to unknown and duplicate fields: dropped, dropped with a warning, or refused. */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

const levels: readonly FieldValidation[] = ['Ignore', 'Strict', 'Warn']

/** What the `fieldValidation` parameter may say, as error messages list it. */
export const fieldValidationLevels: readonly string[] = ['', ...levels]

/** Reads the `fieldValidation` parameter; without it unknown fields are warned about. */
export function fieldValidationOf(parameter: string | null): FieldValidation | undefined {
  if (parameter === null || parameter === '') return 'Warn'
  return levels.find((known) => known === parameter)
}
