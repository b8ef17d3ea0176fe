-- The newest entry of kind `anchored`, from which the session can be read.
ALTER TABLE session ADD COLUMN anchor INTEGER;
