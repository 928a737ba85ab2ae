import { Field } from '../../ui/field.tsx'

type ChoiceFieldProps<T> = {
  label: string
  value: T
  options: [value: T, name: string][]
  choose: (value: T) => void
}

/** A labelled select that names the chosen option in the words of the list. */
export function ChoiceField<T extends string>(props: ChoiceFieldProps<T>) {
  const { label, value, options, choose } = props
  return (
    <Field label={label}>
      {(attributes) => (
        <select
          {...attributes}
          value={value}
          onChange={(event) => {
            const chosen = options.find(([option]) => option === event.currentTarget.value)
            if (chosen) choose(chosen[0])
          }}
        >
          {options.map(([option, name]) => (
            <option key={option} value={option}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}
