read -r arguments
printf '{"refunded": %s}\n' "$arguments"
