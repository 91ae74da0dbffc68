#include "../../../drill/df/df.h"
